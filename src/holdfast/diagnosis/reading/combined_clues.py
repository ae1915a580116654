"""What two clues say together and neither alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from holdfast.causes.form import either
from holdfast.causes.shared.words import KILLED
from holdfast.diagnosis.plain_text import Line, is_progress
from holdfast.diagnosis.reading.card_memory import was_refused_its_share, was_taken_before
from holdfast.diagnosis.reading.log import Clue
from holdfast.diagnosis.reading.printed_figures import of_the_memory
from holdfast.vocabulary import Evidence, Finding

SURE = 0.5
CONFIDENT = 0.8
PROBABLY_MEMORY = 0.58
FEW_LINES = 30
ALONE = 3  # lines: a warning, where it stood, and no more
MANY_LINES = 20_000
LAUNCHERS_CHILD = re.compile(
    r"terminated with signal SIGKILL|exitcode\s{0,4}: -9\b|return ?code =? ?-9\b|died with <Signals\.SIGKILL|(?:interrupted|exited|terminated|died|killed) (?:by|on|with) signal 9\b|\{SIGKILL\(-9\)"
)
IMPORTING = re.compile(r"^(?:>>> |In \[\d+\]: )?(?:import|from) \w|-c [\"'].{0,200}\bimport \w")
WARNED_MATH = re.compile(
    r"RuntimeWarning: (?:divide by zero|invalid value|overflow) encountered in (?:\w+ )?(?:log|sqrt|true_divide|divide|power|exp)"
)
NAN_LOSS = re.compile(r"loss\W{0,6}(?:tensor\()?nan\b", re.IGNORECASE)
WORKERS = re.compile(
    r"will create (?P<wanted>\d{1,6}) worker processes in total.{0,80}max number of worker in current system is (?P<fit>\d{1,6})"
)
ASKED_FOR_GPU = re.compile(
    r"cuda\.is_available\(\)\)?\s*\n\s*False|list_physical_devices\(['\"]GPU['\"]\)\)*\s*\n\s*\[\]"
    r"|jax\.devices\(\)\)?\s*\n\s*\[CpuDevice"
    r"|list_local_devices\(\)\]?\)?\s*\n\s*\[['\"]/(?:device:)?(?:cpu|CPU):0['\"]\]"
)
RESTARTED = re.compile(r"\bkernel [\w-]{8,60} restarted|KernelRestarter: restarting kernel")
SAID_KILLED = re.compile(either(KILLED))
OF_UNKNOWN = re.compile(r"\b\d+/Unknown\b")
LARGE = re.compile(r"(?:^|\| )tcmalloc: +large alloc ")


def together(found: dict[str, Finding], clues: Sequence[Clue], lines: Sequence[Line], only_the_text: bool) -> None:
    _who_holds_the_card(found, lines)
    _a_leak_that_ran_out(found, lines)
    _killed_for_memory(found, lines, only_the_text)
    if only_the_text:
        _written_short(found)
        _stopped_by_the_notebook(found, lines)
    _crashed_at_import(found, lines)
    _numpy_had_warned(found, lines)
    _ended_early(found, lines)
    _its_length_was_unknown(found, lines)
    _more_workers_than_cores(found, lines)
    _on_the_cpu(found, lines, raised=any(clue.kind != "line" for clue in clues))


def _who_holds_the_card(found: dict[str, Finding], lines: Sequence[Line]) -> None:
    gpu = found.get("gpu-memory-exhausted")
    if gpu is None or gpu.confidence < SURE:
        return
    text = "\n".join(line.text for line in lines[:3000])
    for reason, sure in ((was_taken_before(text), 0.84), (was_refused_its_share(text), 0.66)):
        if reason:
            seen = (*gpu.evidence, Evidence(reason, "log"))
            found["gpu-memory-held-by-others"] = Finding("gpu-memory-held-by-others", sure, seen, gpu.details)
            found["gpu-memory-exhausted"] = replace(gpu, confidence=0.4)
            return


def _a_leak_that_ran_out(found: dict[str, Finding], lines: Sequence[Line]) -> None:
    for short_of, leak in (("gpu-memory-exhausted", "gpu-memory-leak"), ("host-memory-exhausted", "host-memory-leak")):
        ran_out = found.get(short_of)
        grew = of_the_memory(lines) if ran_out is not None and ran_out.confidence >= SURE else None
        if ran_out is not None and grew is not None:
            found[leak] = Finding(leak, 0.68, (grew, *ran_out.evidence), ran_out.details)


def _killed_for_memory(found: dict[str, Finding], lines: Sequence[Line], only_the_text: bool) -> None:
    killed, host = found.get("killed"), found.get("host-memory-exhausted")
    if killed is None or host is None:
        return
    if any("system memory" in item.text for item in host.evidence):
        found["host-memory-exhausted"] = replace(host, confidence=max(host.confidence, 0.72))
    elif not only_the_text or host.confidence >= SURE:
        return
    elif _last_was_kill(lines):
        # A bare `Killed` of the shell: in training logs the kernel's memory killer far more often than a person.
        found["host-memory-exhausted"] = replace(host, confidence=PROBABLY_MEMORY)
    elif any(LAUNCHERS_CHILD.search(line.text) for line in lines[-60:]):
        found["host-memory-exhausted"] = replace(host, confidence=PROBABLY_MEMORY - 0.03)  # the same, by its launcher


def _written_short(found: dict[str, Finding]) -> None:
    """PyTorch's archive was not written as far as it should be. Where the disk was not seen, that it was full is usual."""
    full = found.get("disk-full")
    if full is not None and full.confidence < SURE and any("unexpected pos" in item.text for item in full.evidence):
        found["disk-full"] = replace(full, confidence=0.6)


def _stopped_by_the_notebook(found: dict[str, Finding], lines: Sequence[Line]) -> None:
    """Colab shows a kill for memory as `^C`; the allocator had told of a large piece before."""
    large = next((line for line in reversed(lines) if "tcmalloc" in line.text and LARGE.search(line.text)), None)
    pressed = found.get("interrupted")
    if large is None or (pressed is not None and pressed.confidence >= CONFIDENT):
        return
    restarted = next((line for line in lines if RESTARTED.search(line.text)), None)
    seen = pressed.evidence if pressed is not None else ()
    if pressed is None and restarted is not None:
        seen = (Evidence(f"line {restarted.number}: {restarted.text.strip()[:160]}", "log", restarted.at),)
    if seen:
        told = Evidence(f"line {large.number}: {large.text.strip()[:160]}", "log", large.at)
        found["host-memory-exhausted"] = Finding("host-memory-exhausted", 0.64, (told, *seen))
    if pressed is not None:
        found["interrupted"] = replace(pressed, confidence=0.4)


def _last_was_kill(lines: Sequence[Line]) -> bool:
    said = [line.text.strip() for line in lines if line.text.strip()][-3:]
    return any(SAID_KILLED.search(text) for text in said)


def _crashed_at_import(found: dict[str, Finding], lines: Sequence[Line]) -> None:
    """The crash stands right below an import: two libraries do not bear each other."""
    crash = found.get("native-crash")
    if crash is None:
        return
    said = [line.text.strip() for line in lines if line.text.strip()]
    if any(
        IMPORTING.search(before) and re.match(r"Segmentation fault|Aborted", after) for before, after in pairwise(said)
    ):
        found["native-library-conflict"] = Finding("native-library-conflict", 0.66, crash.evidence, crash.details)


def _numpy_had_warned(found: dict[str, Finding], lines: Sequence[Line]) -> None:
    """The loss is NaN, and numpy had said where the first one came from; or its warning is all that was shown."""
    if len(lines) > MANY_LINES:
        return
    warned = next((line for line in lines if "RuntimeWarning" in line.text and WARNED_MATH.search(line.text)), None)
    if warned is None:
        return
    became_nan = any("nan" in line.text.lower() and NAN_LOSS.search(line.text) for line in lines)
    shown_alone = sum(1 for line in lines if line.text.strip()) <= ALONE
    if became_nan or shown_alone:
        said = Evidence(f"line {warned.number}: {warned.text.strip()[:160]}", "log", warned.at)
        found["invalid-math"] = Finding("invalid-math", 0.66 if became_nan else 0.54, (said,))


def _more_workers_than_cores(found: dict[str, Finding], lines: Sequence[Line]) -> None:
    """PyTorch warns of every worker too many; twice as many, and nothing else pasted, is what slows the run."""
    if len(lines) > FEW_LINES or any(f.confidence >= SURE for f in found.values()):
        return
    said = next((line for line in lines if "worker processes in total" in line.text), None)
    counts = WORKERS.search(said.text) if said is not None else None
    if any(is_progress(line.text) for line in lines):
        return
    if said is None or counts is None or int(counts["wanted"]) < 2 * max(1, int(counts["fit"])):
        return
    told = Evidence(f"line {said.number}: {counts['wanted']} workers where {counts['fit']} fit", "log", said.at)
    found["cpu-oversubscribed"] = Finding("cpu-oversubscribed", 0.58, (told,))


def _its_length_was_unknown(found: dict[str, Finding], lines: Sequence[Line]) -> None:
    """Keras 3 finds the length of an epoch by going to its end, and says then what it says of data that is too short."""
    ended = found.get("data-exhausted")
    if ended is not None and any("/Unknown" in line.text and OF_UNKNOWN.search(line.text) for line in lines):
        found["data-exhausted"] = replace(ended, confidence=min(ended.confidence, 0.3))


def _ended_early(found: dict[str, Finding], lines: Sequence[Line]) -> None:
    """Somebody cut out just this: the generator had no more to give, and no report of training follows."""
    ended = found.get("data-exhausted")
    if ended is None or ended.confidence >= SURE or len(lines) > FEW_LINES:
        return
    if any("StopIteration" in item.text for item in ended.evidence) and not any(is_progress(x.text) for x in lines):
        found["data-exhausted"] = replace(ended, confidence=0.56)


def _on_the_cpu(found: dict[str, Finding], lines: Sequence[Line], raised: bool) -> None:
    """Somebody cut out just this: that the run is on the CPU is what it is about."""
    short = len(lines) <= FEW_LINES and not raised and not any(is_progress(line.text) for line in lines)
    if short and (asked := ASKED_FOR_GPU.search("\n".join(line.text for line in lines))):
        found["gpu-not-used"] = Finding("gpu-not-used", 0.62, (Evidence(" ".join(asked[0].split())[:120], "log"),))
    library, unused = found.get("cuda-library-missing"), found.get("gpu-not-used")
    if unused is None:
        return
    confidence = max(unused.confidence, 0.55) if short else unused.confidence
    if library is not None and library.confidence >= SURE:
        confidence = min(confidence, 0.4)
    found["gpu-not-used"] = replace(unused, confidence=confidence)
