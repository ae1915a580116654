"""Sends a verdict to an address that the user gave. Whatever its server does, or does not do, costs ten seconds at most."""

from __future__ import annotations

import http.client
import threading
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

LIMIT_S = 10.0
MASK = "***"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A verdict goes to the address that was given, and not to one that its server names."""

    def redirect_request(self, *_: Any) -> None:
        return None


def carry_out(url: str, verdict: bytes, limit_s: float = LIMIT_S) -> str:
    """Returns what became of it, for the record.

    In a thread that can be left behind: a server that drips its answer, or a name that does not resolve, respects no
    timeout of a socket's.
    """
    became: list[str] = []
    thread = threading.Thread(target=lambda: became.append(_post(url, verdict, limit_s)), daemon=True, name="post")
    thread.start()
    thread.join(limit_s)
    return became[0] if became else f"no answer within {limit_s:.0f} s"


def _post(url: str, verdict: bytes, limit_s: float) -> str:
    request = urllib.request.Request(
        url, verdict, {"Content-Type": "application/json", "User-Agent": "holdfast"}, method="POST"
    )
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        with opener.open(request, timeout=limit_s) as answer:
            return f"answered {answer.status}"
    except urllib.error.HTTPError as error:
        error.close()
        return f"answered {error.code}"
    except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: a name that is no host's
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        return f"could not be sent: {str(reason) or type(reason).__name__}"


def address_trouble(url: str) -> str:
    """What is wrong with an address; empty where nothing is."""
    try:
        parts = urllib.parse.urlsplit(url)
        host = parts.hostname if parts.port != 0 else None  # reading the port checks it
    except ValueError as error:
        return str(error)
    if MASK in url:
        return "its secret part was masked in the record; give the whole address"
    if parts.scheme not in ("http", "https") or not host or any(c.isspace() or not c.isprintable() for c in url):
        return "give an address such as https://example.org/hook"
    return ""


def shown_address(url: str) -> str:
    """Without what may be secret: many addresses of this kind are a password as a whole."""
    try:
        parts = urllib.parse.urlsplit(url)
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return MASK
    secret = bool(parts.username or parts.path.strip("/") or parts.query)
    return f"{parts.scheme}://{parts.hostname}{port}" + (f"/{MASK}" if secret else "")
