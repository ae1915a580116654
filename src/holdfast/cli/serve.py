from __future__ import annotations

import argparse
import os
import secrets
import socket
from functools import partial
from pathlib import Path

from holdfast.cli.errors import UserError
from holdfast.cli.metrics import metrics_text
from holdfast.cli.recording import Recording, any_alive, read_run
from holdfast.cli.run_store import all_runs
from holdfast.views.web.viewer import Unreadable, Viewer

ADDRESS = "127.0.0.1"
PORT = 8465
TOKEN_LENGTH = 16  # at least
OTHER_PORTS = 20  # tried after it, where none was asked for


class ServeVerb:
    """Shows the runs recorded here in a browser: all of them, one live, two side by side.

    holdfast serve
    holdfast serve --port 9000 --dir /data/runs
    ssh -L 8465:127.0.0.1:8465 machine    from elsewhere: then open the printed link
    holdfast serve --token-file ~/.holdfast-token    one link for good; Prometheus reads the same file for /metrics

    The page only reads, works without a network, and is for whoever has the printed link, on this machine alone.
    Ends with Ctrl-C.
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--port", type=port, help=f"where it is served (default: {PORT}, or the next one that is free)"
        )
        parser.add_argument(
            "--token-file",
            type=Path,
            metavar="FILE",
            help="keep the token of the link there, for the next time (made if it is not there, for this user alone)",
        )
        parser.add_argument("--dir", help="where runs are kept (default: ./.holdfast, or $HOLDFAST_DIR)")

    def run(self, options: argparse.Namespace) -> int:
        import uvicorn  # noqa: PLC0415 - nothing but this verb serves

        from holdfast.views.web.server import app  # noqa: PLC0415

        listening = _listen(options.port)
        number = listening.getsockname()[1]
        token = secrets.token_urlsafe(24) if options.token_file is None else _kept_token(options.token_file)
        viewer = Viewer(lambda: all_runs(options.dir), _read, any_alive)
        served = app(viewer, partial(_metrics, options.dir), token, cookie=f"holdfast-{number}")
        print(f"http://{ADDRESS}:{number}/?token={token}\n\nEnds with Ctrl-C.", flush=True)
        config = uvicorn.Config(
            served, log_level="warning", access_log=False, server_header=False, lifespan="off", ws="none",
            timeout_graceful_shutdown=1,
        )  # fmt: skip
        uvicorn.Server(config).run(sockets=[listening])
        return 0


def _metrics(directory: str | None) -> bytes:
    try:
        return metrics_text(directory)
    except UserError as error:
        raise LookupError(str(error)) from None


def _kept_token(path: Path) -> str:
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(24) + "\n")
    except FileExistsError:
        pass
    except OSError as error:
        raise UserError(f"cannot write the token to {path}: {error.strerror}") from None
    try:
        token, mode = path.read_text(encoding="ascii").strip(), path.stat().st_mode
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read a token from {path}: {error}") from None
    if mode & 0o077:
        raise UserError(f"others may read {path}, and with it what is served; chmod 600 it")
    if len(token) < TOKEN_LENGTH or not token.isprintable() or " " in token:
        raise UserError(f"{path} holds no token; remove it, and a new one is made")
    return token


def _read(run: Path) -> Recording:
    try:
        return read_run(run, of_the_job=True)
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
