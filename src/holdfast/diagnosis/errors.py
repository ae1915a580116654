"""From what the script printed to causes: exception types and error numbers first, words second."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.diagnosis.plain_text import lines_of
from holdfast.diagnosis.tracebacks import FatalError, Raised, last_chain, last_fatal, user_frame
from holdfast.vocabulary import Evidence, Finding, Window


@dataclass(frozen=True, slots=True)
class Rule:
    """An exception means `cause` when its type is among `types` (any, if empty) and `words` are in its message."""

    cause: str
    confidence: float
    types: frozenset[str] = frozenset()
    words: str = ""

    def fits(self, raised: Raised) -> bool:
        typed = not self.types or raised.bare_type in self.types
        return typed and (not self.words or re.search(self.words, raised.message, re.IGNORECASE) is not None)


def _rule(cause: str, confidence: float, types: str = "", words: str = "") -> Rule:
    return Rule(cause, confidence, frozenset(types.split()), words)


SHM = r"shm|/torch_\d|shared memory"
RULES = (
    _rule("interrupted", 0.9, "KeyboardInterrupt"),
    _rule(
        "shared-memory-exhausted",
        0.93,
        words=r"(?:insufficient|out of|raise your|allocate) shared memory|(No space left|write to file).*(" + SHM + ")",
    ),
    _rule("shared-memory-exhausted", 0.9, words=r"(" + SHM + r").*(No space left|Bus error)"),
    _rule(
        "disk-full", 0.95, words=r"\[Errno 28\]|No space left on device|\[Errno 122\]|Disk quota exceeded|StorageFull"
    ),
    _rule("too-many-open-files", 0.95, words=r"\[Errno 24\]|Too many open files"),
    _rule(
        "gpu-memory-exhausted", 0.9, words=r"CUDA (?:error: )?out of memory|CUDA_ERROR_OUT_OF_MEMORY|HIP out of memory"
    ),
    _rule("gpu-memory-exhausted", 0.85, "ResourceExhaustedError", r"device:GPU|GPU_\d"),
    _rule("gpu-memory-exhausted", 0.7, "OutOfMemoryError"),
    _rule("host-memory-exhausted", 0.9, "MemoryError _ArrayMemoryError"),
    _rule("host-memory-exhausted", 0.9, words=r"\[Errno 12\]|DefaultCPUAllocator.*(?:allocate|memory)|std::bad_alloc"),
    _rule("host-memory-exhausted", 0.85, "ResourceExhaustedError", r"OOM when allocating|failed to allocate memory"),
    _rule(
        "too-many-processes", 0.9, words=r"can't start new thread|pthread_create.*failed|fork.*temporarily unavailable"
    ),
    _rule("too-many-processes", 0.85, "BlockingIOError", r"\[Errno 11\]"),
    _rule(
        "disk-full", 0.45, words=r"file write failed|failed writing file|unexpected pos \d+|Unable to (?:flush|write)"
    ),
    _rule("missing-file", 0.88, "FileNotFoundError"),
    _rule("worker-died", 0.7, words=r"worker \(pid.*(?:killed by signal|exited unexpectedly)|BrokenProcessPool"),
)
WORDS_IN_NO_EXCEPTION = (
    _rule("killed", 0.3, words=r"^(?:.*: line \d+: *\d+ )?Killed\b"),
    _rule(
        "shared-memory-exhausted",
        0.9,
        words=r"insufficient shared memory|bus error.*shm|shared memory\(shm\).*No space left",
    ),
    _rule(
        "too-many-processes",
        0.85,
        words=r"pthread_create\(?\)? failed|libgomp: Thread creation failed"
        r"|Thread \S+ creation via pthread_create",
    ),
    _rule("disk-full", 0.8, words=r"No space left on device"),
    _rule("host-memory-exhausted", 0.8, words=r"std::bad_alloc|Cannot allocate memory"),
    _rule(
        "native-crash",
        0.4,
        words=r"free\(\): |malloc\(\): |realloc\(\): |double free|corrupted .*(?:list|size)"
        r"|terminate called|Check failed:|stack smashing|Segmentation fault|\bAborted\b",
    ),
)
WORDS_LINES = 25
AFTER_LINES = 40  # what loggers and progress bars may still say after the traceback that ended the script
PROBABLY = 0.7
HANDLED = 0.4  # a traceback that did not end the script explains little
LINE_CHARACTERS = 1000
QUOTED = re.compile(r"'([^']+)'")


def find_errors(window: Window) -> list[Finding]:
    """What the last words of each stream tell."""
    end = window.event("script.exit")
    code = int(end.data["code"]) if end else 1
    texts = {name: [line[:LINE_CHARACTERS] for line in lines_of(window.output(name))] for name in window.streams()}
    chains = {name: last_chain(lines) for name, lines in texts.items()}
    trust = {name: _trust(chains[name], lines, code) for name, lines in texts.items()}
    words_trust = HANDLED if max(trust.values(), default=0.0) > HANDLED else 1.0
    findings: list[Finding] = []
    for name, lines in texts.items():
        found = [_at_most(finding, trust[name]) for finding in _from_exceptions(chains[name])]
        found += _from_fatal(last_fatal(lines))
        found += [_at_most(finding, words_trust) for finding in _from_words(lines[-WORDS_LINES:])]
        at = end.at if end and trust[name] > HANDLED else None
        findings += [_from_stream(finding, name, at) for finding in found]
    return findings


def _trust(chain: Sequence[Raised], lines: Sequence[str], code: int) -> float:
    """How surely the last traceback is what ended the script.

    An exception that nothing handled makes Python exit with 1 (or 130) and is the last that it prints; loggers and
    threads may still say something, but so may a script that went on and left with a message.
    """
    if not chain or (code not in (1, 130) and code < 128):
        return HANDLED
    after = sum(1 for line in lines[chain[-1].last_line + 1 :] if line.strip())
    return 1.0 if after == 0 else PROBABLY if after <= AFTER_LINES else HANDLED


def _at_most(finding: Finding, confidence: float) -> Finding:
    return replace(finding, confidence=min(finding.confidence, confidence))


def _from_stream(finding: Finding, stream: str, at: float | None) -> Finding:
    return replace(finding, evidence=tuple(replace(item, source=stream, at=at) for item in finding.evidence))


def _from_exceptions(chain: Sequence[Raised]) -> list[Finding]:
    if not chain:
        return []
    findings = []
    for rule in RULES:
        raised = next((raised for raised in chain if rule.fits(raised)), None)
        if raised is not None:
            findings.append(Finding(rule.cause, rule.confidence, _quote(raised, chain), _details(raised, chain)))
            break
    root = next((raised for raised in chain if user_frame(raised.frames)), chain[-1])
    details = {
        "headline": f"The script raised {root.type}: {_short(root.first_line)}".rstrip(": "),
        **_details(root, chain),
    }
    findings.append(Finding("unhandled-exception", 0.9, _quote(root, chain), details))
    return findings


def _quote(raised: Raised, chain: Sequence[Raised]) -> tuple[Evidence, ...]:
    evidence = [Evidence(f"{raised.type}: {_short(raised.first_line)}".rstrip(": "), "stderr")]
    frame = user_frame(raised.frames) or next(filter(None, (user_frame(link.frames) for link in chain)), None)
    if frame is not None:
        evidence.append(Evidence(f"raised from {frame}", "stderr"))
    if chain[-1] is not raised:
        evidence.append(Evidence(f"which led to {chain[-1].type}: {_short(chain[-1].first_line)}", "stderr"))
    return tuple(evidence)


def _details(raised: Raised, chain: Sequence[Raised]) -> dict[str, str]:
    frame = user_frame(raised.frames) or user_frame(chain[-1].frames)
    details = {"frame": f"{frame.file}:{frame.line}"} if frame else {}
    if raised.bare_type == "FileNotFoundError" and (quoted := QUOTED.search(raised.message)):
        path, folder = quoted[1], quoted[1].rpartition("/")[0]
        details |= {"headline": f"A file is not there: {path}", "path": path, **({"folder": folder} if folder else {})}
    return details


def _from_fatal(fatal: FatalError | None) -> list[Finding]:
    if fatal is None:
        return []
    evidence = [Evidence(f"Fatal Python error: {fatal.reason}", "stderr")]
    own = user_frame(tuple(reversed(fatal.frames)))
    if fatal.frames:
        evidence.append(Evidence(f"innermost Python frame: {fatal.frames[0]}", "stderr"))
    if own is not None and own != fatal.frames[0]:
        evidence.append(Evidence(f"called from {own}", "stderr"))
    cause = "illegal-instruction" if "Illegal instruction" in fatal.reason else "native-crash"
    return [Finding(cause, 0.6, tuple(evidence), {"frame": f"{own.file}:{own.line}"} if own else {})]


def _from_words(lines: Sequence[str]) -> list[Finding]:
    findings = []
    left = list(reversed(lines))
    for rule in WORDS_IN_NO_EXCEPTION:
        line = next((line for line in left if re.search(rule.words, line, re.IGNORECASE)), None)
        if line is not None:
            left.remove(line)  # one line has one meaning, the most particular one
            findings.append(Finding(rule.cause, rule.confidence, (Evidence(_short(line.strip()), "stderr"),)))
    return findings


def _short(text: str, limit: int = 200) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
