"""What is quoted from an exception, and what fills the remedies."""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.diagnosis.tracebacks import Raised, user_frame
from holdfast.vocabulary import Evidence

QUOTED = re.compile(r"'([^'\n]{1,400})'")
UNQUOTED = re.compile(r"No such file or directory:? (?P<path>/\S{1,300})|(?:^|[ :])(?P<other>/\S{1,300}); No such file")


def quote(raised: Raised, chain: Sequence[Raised]) -> tuple[Evidence, ...]:
    evidence = [Evidence(f"{raised.type}: {short(raised.telling_line)}".rstrip(": "), "stderr")]
    frame = user_frame(raised.frames) or next(filter(None, (user_frame(link.frames) for link in chain)), None)
    if frame is not None:
        evidence.append(Evidence(f"raised from {frame}", "stderr"))
        if frame.code:
            evidence.append(Evidence(f"there: {short(frame.code, 120)}", "stderr"))
    if chain[-1] is not raised:
        evidence.append(Evidence(f"which led to {chain[-1].type}: {short(chain[-1].telling_line)}", "stderr"))
    return tuple(evidence)


def details_of(raised: Raised, chain: Sequence[Raised]) -> dict[str, str]:
    frame = user_frame(raised.frames) or user_frame(chain[-1].frames)
    details = {"frame": f"{frame.file}:{frame.line}"} if frame else {}
    if path := missing_file(raised):
        folder = path.rpartition("/")[0]
        details |= {"path": path, **({"folder": folder} if folder else {})}
    return details


def missing_file(raised: Raised) -> str:
    """Its path; nothing where the exception is about something else."""
    if raised.bare_type != "FileNotFoundError" and "No such file" not in raised.message:
        return ""
    quoted = QUOTED.search(raised.message) or UNQUOTED.search(raised.message)
    return next((part for part in quoted.groups() if part), "") if quoted else ""


def not_there(raised: Raised) -> str:
    path = missing_file(raised)
    return f"A file is not there: {path}" if path else ""


def short(text: str, limit: int = 200) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
