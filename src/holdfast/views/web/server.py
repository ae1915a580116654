"""`holdfast serve`: pages that only read, for the one who has the link.

Bound to loopback. A browser shows that it may by a token: first in the printed link, from then on in a cookie that no script
and no other site gets. A foreign name that points at 127.0.0.1 is refused by its Host header, a page of another site by its
Origin.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.journal import NewerJournal
from holdfast.views.web import pages
from holdfast.views.web.assets import read_static
from holdfast.views.web.viewer import NoSuchRun, Unreadable, Viewer

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")  # with any port: `ssh -L` maps it to another
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),  # styles: plotly.js writes its own into the page
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
METRICS_TYPE = "text/plain; version=0.0.4"
TYPES = {".js": "text/javascript", ".css": "text/css"}

# -- who may ask


class OnlyForTheUser:
    """Before anything else: method, Host, Origin, token."""

    def __init__(self, app: ASGIApp, token: str, cookie: str) -> None:
        self._app, self._token, self._cookie = app, token, cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        refusal, by_link = self._refusal(request), self._is_right(request.query_params.get("token"))

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                if by_link and refusal is None:
                    headers["Set-Cookie"] = f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict"
            await send(message)

        await (refusal or self._app)(scope, receive, send_with_headers)

    def _refusal(self, request: Request) -> Response | None:
        if request.method not in ("GET", "HEAD"):
            return PlainTextResponse("This page only reads.\n", 405, {"Allow": "GET, HEAD"})
        if not _is_loopback(request.headers):
            return PlainTextResponse("This page answers to 127.0.0.1 and localhost only.\n", 421)
        given = (request.query_params.get("token"), request.cookies.get(self._cookie), _bearer(request.headers))
        if not any(self._is_right(token) for token in given):
            text = (
                "Open the link that `holdfast serve` printed: the token in it is missing here or is not the right one."
            )
            return HTMLResponse(pages.refused_page("This page is not for everybody", text), 403)
        return None

    def _is_right(self, given: str | None) -> bool:
        return given is not None and hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode())


def _bearer(headers: Headers) -> str | None:
    """As Prometheus sends it."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _is_loopback(headers: Headers) -> bool:
    host, origin = headers.get("host", ""), headers.get("origin")
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if name.lower() not in LOOPBACK:
        return False
    if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
        return False
    return origin is None or urlsplit(origin).netloc.lower() == host.lower()


# -- what is answered


Metrics = Callable[[], bytes]  # raises LookupError with the reason where there are none


def app(viewer: Viewer, metrics: Metrics, token: str, cookie: str) -> Starlette:
    one_at_a_time = Lock()

    def metrics_now(_asked: Request) -> Response:
        with one_at_a_time:
            try:
                return Response(metrics(), media_type=METRICS_TYPE)
            except LookupError as error:
                return PlainTextResponse(f"{error.args[0]}\n", 501)

    routes = [
        Route("/metrics", _answered(metrics_now)),
        Route("/", _answered(lambda _: _html(pages.runs_page(viewer.rows())))),
        Route("/run/{run}", _answered(lambda asked: _html(pages.run_page(viewer.prepare(_run(asked)).name)))),
        Route("/run/{run}/data", _answered(lambda asked: _json(viewer.whole(_run(asked))))),
        Route("/run/{run}/new", _answered(lambda asked: _json(viewer.since(_run(asked), _number(asked, "version"))))),
        Route("/run/{run}/signals", _answered(lambda asked: _json(viewer.signals(_run(asked), _word(asked, "chart"))))),
        Route("/run/{run}/verdict", _answered(lambda asked: _html(viewer.verdict(_run(asked))))),
        Route("/run/{run}/line", _answered(lambda asked: _json(viewer.line(_run(asked))))),
        Route("/compare", _answered(lambda asked: _html(pages.compare_page(*_two(viewer, asked))))),
        Route("/differences", _answered(lambda asked: _html(viewer.differences(*_two(viewer, asked))))),
        Route("/static/{name}", _answered(_file)),
    ]
    return Starlette(routes=routes, middleware=[Middleware(OnlyForTheUser, token=token, cookie=cookie)])


Answer = Callable[[Request], Response]


def _answered(answer: Answer) -> Answer:
    """A plain function, so that starlette calls it in a thread: reading a record must not hold up the other requests."""

    @wraps(answer)
    def answered(request: Request) -> Response:
        try:
            return answer(request)
        except NoSuchRun as error:
            return HTMLResponse(pages.refused_page("No such run", f"There is no run called {error}."), 404)
        except (NewerJournal, Unreadable) as error:
            return HTMLResponse(pages.refused_page("This record cannot be read", str(error)), 409)
        except BadQuestion as error:
            return PlainTextResponse(f"{error}\n", 400)

    return answered


class BadQuestion(ValueError):
    """A parameter is missing or makes no sense."""


def _run(asked: Request) -> str:
    return str(asked.path_params["run"])


def _word(asked: Request, name: str) -> str:
    given = asked.query_params.get(name)
    if not given:
        raise BadQuestion(f"give {name}=")
    return given


def _number(asked: Request, name: str) -> int:
    given = _word(asked, name)
    if not given.isascii() or not given.isdigit() or len(given) > 15:
        raise BadQuestion(f"{name}= is no number")
    return int(given)


def _two(viewer: Viewer, asked: Request) -> tuple[str, str]:
    return viewer.find(_word(asked, "a")).name, viewer.find(_word(asked, "b")).name


def _html(text: str) -> Response:
    return HTMLResponse(text)


def _json(data: Any) -> Response:
    return Response(json.dumps(data, allow_nan=False), media_type="application/json")


def _file(asked: Request) -> Response:
    name = str(asked.path_params["name"])
    try:
        return Response(read_static(name), media_type=TYPES[Path(name).suffix])
    except KeyError:
        return PlainTextResponse("no such file\n", 404)
