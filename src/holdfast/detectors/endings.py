"""What the record says about how the script ended, for the detectors of endings."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.recorded_events import Exit
from holdfast.vocabulary import Evidence, Window, signal_name
from holdfast.windows import Reads

# What the kernel writes when it kills for memory, in two forms: one line of keys and one sentence.
OOM_KEYS = re.compile(
    r"oom-kill:constraint=(?P<constraint>\w+).*?(?:oom_memcg=(?P<limited>[^,]*),)?task_memcg=(?P<memcg>[^,]*),task=(?P<name>[^,]*),pid=(?P<pid>\d+)"
)
OOM_SENTENCE = re.compile(r"Killed process (?P<pid>\d+) \((?P<name>[^)]*)\)")


# How native code ends that uses memory it was not given: a null pointer, or a check that fails.
ALLOCATION_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS)
STARTS = ("run.start", "attempt.start")
LAST_S = 60.0  # a trainer may take that long to notice that a worker died
PROCESSES = ("process.appeared", "process.gone")
# What the functions below read, for the declarations of those who call them.
ENDING = Reads(events=(Exit.KIND,))
KERNEL_LINES = Reads(events=("kernel.line", *STARTS, *PROCESSES))
KERNEL_KILLS = ENDING | KERNEL_LINES | Reads(events=("machine", "cgroup.found"))
KILL_COUNTS = ENDING | Reads(course=("cgroup.oom_kill_count",), events=("machine", "probe.missing", "probe.failed"))


@dataclass(frozen=True, slots=True)
class Ending:
    code: int
    signal: int  # 0 when it ended by itself; also taken from 128+N, as shells report their child's
    direct: bool  # the kernel told us of the signal, not a shell's exit code
    at: float
    waiting: bool = False  # no script ran: it was about to be started again

    def evidence(self) -> Evidence:
        if self.waiting:
            text = f"{signal_name(self.signal)} came while Holdfast was about to start the script again"
            return Evidence(text, "exit", self.at, self.signal)
        if not self.signal:
            return Evidence(f"the script ended with exit code {self.code}", "exit", self.at, self.code)
        name = signal_name(self.signal)
        if self.direct:
            return Evidence(f"the script was ended by {name}", "exit", self.at, self.signal)
        return Evidence(
            f"exit code {self.code}: a process of the script was ended by {name}", "exit", self.at, self.code
        )


def ending(window: Window) -> Ending | None:
    event = window.event(Exit.KIND)
    if event is None:
        return None
    exit = Exit.of(event)
    if exit.signal:
        return Ending(exit.code, exit.signal, True, event.at, exit.waiting)
    implied = exit.code - 128 if 128 < exit.code <= 128 + 31 else 0
    return Ending(exit.code, implied, False, event.at)


@dataclass(frozen=True, slots=True)
class KernelKill:
    constraint: str  # "" where only the sentence was seen
    memcg: str  # of the process
    name: str
    pid: int
    limited: str  # the group whose limit was hit, that one or one above
    evidence: Evidence


def kernel_kills(window: Window) -> list[KernelKill]:
    """Kills for memory in the kernel log that hit processes of the job."""
    kills = (kill for event in window.events("kernel.line") if (kill := _kill(str(event.data["text"]), event.at)))
    kills = (kill for kill in kills if _near_the_end(window, kill))
    pids, names, group = job_pids(window), job_names(window), job_group(window)
    if not pids_are_the_kernels(window):
        return [kill for kill in kills if kill.name in names]
    # A process may start and be killed between two readings; its control group still says whose it was.
    return [kill for kill in kills if kill.pid in pids or (group and kill.memcg == group)]


def _near_the_end(window: Window, kill: KernelKill) -> bool:
    """A worker killed hours ago did not end the run, unless it was the script itself."""
    scripts = {int(event.data["script_pid"]) for event in window.events(*STARTS)}
    return kill.pid in scripts or kill.evidence.at is None or kill.evidence.at > last_moments(window)


def last_moments(window: Window) -> float:
    """The time from which on something may be related to the end."""
    how = ending(window)
    return how.at - LAST_S if how is not None else float("-inf")


def _kill(text: str, at: float) -> KernelKill | None:
    if keys := OOM_KEYS.search(text):
        quoted = f"oom-kill constraint={keys['constraint']} task={keys['name']} pid={keys['pid']}"
        evidence = Evidence(f"kernel log: {quoted}", "kernel-log", at)
        return KernelKill(
            keys["constraint"], keys["memcg"], keys["name"], int(keys["pid"]), keys["limited"] or "", evidence
        )
    if sentence := OOM_SENTENCE.search(text):
        constraint = "CONSTRAINT_MEMCG" if "Memory cgroup out of memory" in text else ""
        evidence = Evidence(f"kernel log: {text[:160]}", "kernel-log", at)
        return KernelKill(constraint, "", sentence["name"], int(sentence["pid"]), "", evidence)
    return None


def kills_may_be_ours(window: Window) -> bool:
    """Whether a kill the kernel counted may have hit the job, as long as its log does not name one of ours.

    Where the log was read it would have named one. The group's own counter moves for each of its members.
    """
    if _kernel_log_was_read(window):
        return False
    return (
        window.rise("cgroup.oom_kill_count", last_moments(window)) > 0 or window.last("cgroup.oom_kill_count") is None
    )


def _kernel_log_was_read(window: Window) -> bool:
    missing = [event.data.get("probe") for event in window.events("probe.missing", "probe.failed")]
    return window.event("machine") is not None and "kernel_log" not in missing


def pids_are_the_kernels(window: Window) -> bool:
    """In a container's pid namespace the kernel log has other process ids than the record."""
    machine = window.event("machine")
    return machine is None or machine.data.get("pid_namespace", "initial") == "initial"


def job_names(window: Window) -> set[str]:
    return {str(event.data["name"]) for event in window.events(*PROCESSES)}


def job_group(window: Window) -> str:
    found = window.event("cgroup.found")
    path = str(found.data.get("path", "")) if found else ""
    return "" if path == "/" else path


def job_pids(window: Window) -> set[int]:
    pids = {int(event.data["script_pid"]) for event in window.events(*STARTS)}
    return pids | {int(event.data["pid"]) for event in window.events(*PROCESSES)}


def kernel_lines(window: Window, pattern: str) -> Iterator[Evidence]:
    """Lines of the kernel's log about one of the job's processes."""
    pids = job_pids(window)
    for event in window.events("kernel.line"):
        text = str(event.data["text"])
        found = re.search(pattern, text)
        if found and int(found["pid"]) in pids:
            yield Evidence(f"kernel log: {text[:160]}", "kernel-log", event.at)
