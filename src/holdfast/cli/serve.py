from __future__ import annotations

import argparse
import secrets
import socket
from pathlib import Path

from holdfast.cli.errors import UserError
from holdfast.cli.recording import Recording, any_alive, read_run
from holdfast.cli.run_store import all_runs
from holdfast.views.web.viewer import Unreadable, Viewer

ADDRESS = "127.0.0.1"
PORT = 8465
OTHER_PORTS = 20  # tried after it, where none was asked for


class ServeVerb:
    """Shows the runs recorded here in a browser: all of them, one live, two side by side.

    holdfast serve
    holdfast serve --port 9000 --dir /data/runs
    ssh -L 8465:127.0.0.1:8465 machine    from elsewhere: then open the printed link

    The page only reads, works without a network, and is for whoever has the printed link, on this machine alone.
    Ends with Ctrl-C.
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--port", type=port, help=f"where it is served (default: {PORT}, or the next one that is free)"
        )
        parser.add_argument("--dir", help="where runs are kept (default: ./.holdfast, or $HOLDFAST_DIR)")

    def run(self, options: argparse.Namespace) -> int:
        import uvicorn  # noqa: PLC0415 - nothing but this verb serves

        from holdfast.views.web.server import app  # noqa: PLC0415

        listening = _listen(options.port)
        number = listening.getsockname()[1]
        token = secrets.token_urlsafe(24)
        viewer = Viewer(lambda: all_runs(options.dir), _read, any_alive)
        served = app(viewer, token, cookie=f"holdfast-{number}")
        print(f"http://{ADDRESS}:{number}/?token={token}\n\nEnds with Ctrl-C.", flush=True)
        config = uvicorn.Config(
            served, log_level="warning", access_log=False, server_header=False, lifespan="off", ws="none",
            timeout_graceful_shutdown=1,
        )  # fmt: skip
        uvicorn.Server(config).run(sockets=[listening])
        return 0


def _read(run: Path) -> Recording:
    try:
        return read_run(run)
    except UserError as error:
        raise Unreadable(str(error)) from None


def _listen(wanted: int | None) -> socket.socket:
    refused: OSError | None = None
    for number in range(PORT, PORT + OTHER_PORTS) if wanted is None else (wanted,):
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((ADDRESS, number))
            listening.listen(128)  # before the link is printed: whoever is quick waits and is not refused
        except OSError as error:
            listening.close()
            refused = error
        else:
            return listening
    raise UserError(
        f"cannot serve at port {wanted or PORT}: {refused.strerror if refused else '?'}; choose another with --port"
    )


def port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; give a number up to 65535, or 0 for any that is free")
    return int(text)
