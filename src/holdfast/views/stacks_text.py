"""Where every thread of a job stands, for people: equal stacks together, the odd one first, libraries folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from holdfast.inside.library_paths import is_library
from holdfast.stack_dumps import Frame
from holdfast.stack_snapshots import ProcessSnapshot, ThreadSnapshot, TreeSnapshot, Wait
from holdfast.views.safe_text import safe

BOLD, DIM, PLAIN = "\033[1m", "\033[2m", "\033[0m"
STATES = {
    "R": "running",
    "S": "waiting",
    "D": "waiting in the kernel, cannot be interrupted",
    "T": "stopped",
    "t": "stopped by a debugger",
    "Z": "dead",
    "X": "dead",
    "I": "idle",
}
SAID_BY_STATE = "ZXTt"  # why there are no stacks
NAMED = 6  # threads of a group that are named
COMMAND_WIDTH = 70


@dataclass(frozen=True, slots=True)
class Group:
    """Threads that stand at the same place."""

    frames: tuple[Frame, ...]
    threads: tuple[tuple[ProcessSnapshot, ThreadSnapshot], ...]


def as_text(run: str, snapshot: TreeSnapshot, notes: Sequence[str], colour: bool, fold: bool = True) -> str:
    """`fold`: of frames of libraries that follow each other only one is shown."""
    threads = sum(len(process.threads) for process in snapshot.processes)
    head = (
        f"run {run}: {counted(len(snapshot.processes), 'process', 'processes')}, "
        f"{counted(threads, 'thread', 'threads')}, looked at in {snapshot.took_s * 1000:.0f} ms"
    )
    sections = [[safe(head), *notes, *([snapshot.missing] if snapshot.missing else [])], _tree(snapshot)]
    sections += [_group(group, snapshot, colour, fold) for group in groups(snapshot)]
    if rest := _without_python(snapshot):
        sections.append(rest)
    return "\n\n".join("\n".join(lines) for lines in sections)


def groups(snapshot: TreeSnapshot) -> list[Group]:
    """The smallest first: where many stand together and one does not, that one is looked for."""
    by_frames: dict[tuple[Frame, ...], list[tuple[ProcessSnapshot, ThreadSnapshot]]] = {}
    for process in snapshot.processes:
        for thread in process.threads:
            if thread.frames:
                by_frames.setdefault(thread.frames, []).append((process, thread))
    found = [Group(frames, tuple(threads)) for frames, threads in by_frames.items()]
    return sorted(found, key=lambda group: (len(group.threads), not _has_own(group.frames), not _has_main(group)))


def counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


# -- the processes


def _tree(snapshot: TreeSnapshot) -> list[str]:
    known = {process.pid for process in snapshot.processes}
    lines: list[str] = []

    def add(process: ProcessSnapshot, depth: int) -> None:
        state = STATES.get(process.state, process.state)
        more = f"; {process.missing}" if process.missing and process.state not in SAID_BY_STATE else ""
        command = safe(process.command)[:COMMAND_WIDTH]
        lines.append(f"  {'  ' * depth}{process.pid} {command}: {state}{more}")
        for child in snapshot.processes:
            if child.parent == process.pid and child.pid != process.pid:
                add(child, depth + 1)

    for process in snapshot.processes:
        if process.parent not in known:
            add(process, 0)
    return ["processes", *lines]


# -- threads that run Python


def _group(group: Group, snapshot: TreeSnapshot, colour: bool, fold: bool) -> list[str]:
    names = [_name(process, thread, len(snapshot.processes) > 1) for process, thread in group.threads[:NAMED]]
    if len(group.threads) > NAMED:
        names.append(f"{len(group.threads) - NAMED} more")
    title = names[0] if len(names) == 1 else f"{len(group.threads)} threads at the same place: {', '.join(names)}"
    does = sorted({_does(thread) for _, thread in group.threads})
    return [safe(f"{title}: {'; '.join(does)}"), *_frames(group.frames, colour, fold)]


def _name(process: ProcessSnapshot, thread: ThreadSnapshot, tell_process: bool) -> str:
    name = "main thread" if thread.tid == process.pid else f"thread {thread.name} ({thread.tid})"
    return f"{name} of {process.pid}" if tell_process else name


def _does(thread: ThreadSnapshot) -> str:
    if thread.wait is not None:
        return _waits(thread.wait)
    return STATES.get(thread.state, thread.state)


def _waits(wait: Wait) -> str:
    text = {"sleep": "sleeps", "child": "waits for the end of a child", "other": "waits"}.get(wait.kind)
    text = text or f"waits ({wait.kind})"
    ends = ", ".join(f"{end.what} {end.text}".strip() for end in wait.ends[:3])
    return f"{text} on {ends}" if ends else text


def _frames(frames: Iterable[Frame], colour: bool, fold: bool) -> list[str]:
    """Innermost first. Of each row of library frames the innermost is shown: it says what was called."""
    lines = []
    for own, some in groupby(frames, key=_is_own):
        row = list(some)
        if own:
            lines += [_styled(f"  > {frame}{_code(frame)}", BOLD, colour) for frame in row]
        elif fold and len(row) > 1:
            lines.append(_styled(f"    {_short(row[0])} … and {len(row) - 1} more of libraries", DIM, colour))
        else:
            lines += [_styled(f"    {_short(frame)}", DIM, colour) for frame in row]
    return lines


def _is_own(frame: Frame) -> bool:
    """Native frames have no line."""
    return frame.line > 0 and not is_library(frame.file)


def _short(frame: Frame) -> str:
    """A library's file from its package on."""
    for root in ("site-packages/", "dist-packages/"):
        if root in frame.file:
            return f"{frame.file.split(root)[-1]}:{frame.line} in {frame.function}"
    place = "/".join(frame.file.split("/")[-2:])
    return f"{place}:{frame.line} in {frame.function}" if frame.line else f"{frame.function} ({place})"


def _code(frame: Frame) -> str:
    return f"    {frame.code}" if frame.code else ""


def _styled(line: str, style: str, colour: bool) -> str:
    return f"{style}{safe(line)}{PLAIN}" if colour else safe(line)


# -- threads that do not, or could not be asked


def _without_python(snapshot: TreeSnapshot) -> list[str]:
    silent: Counter[str] = Counter()
    native: Counter[int] = Counter()
    for process in snapshot.processes:
        for thread in process.threads:
            if thread.missing:
                silent[f"thread {thread.name} ({thread.tid}): {thread.missing}"] += 1
            elif not thread.frames and not process.missing:
                native[process.pid] += 1
    lines = [f"  {safe(text)}" for text in silent]
    lines += [f"  {counted(count, 'thread', 'threads')} of {pid} run no Python" for pid, count in native.items()]
    return ["no stack", *lines] if lines else []


def _has_own(frames: Sequence[Frame]) -> bool:
    return any(map(_is_own, frames))


def _has_main(group: Group) -> bool:
    return any(thread.tid == process.pid for process, thread in group.threads)
