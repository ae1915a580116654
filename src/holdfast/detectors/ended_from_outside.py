"""Ended from outside: by a request (SIGTERM, Ctrl-C, a closed terminal, a CPU-time limit) or SIGKILL, not for memory."""

from __future__ import annotations

import re
import signal

from holdfast.detectors.endings import (
    ENDING,
    KERNEL_KILLS,
    KILL_COUNTS,
    PROCESSES,
    Ending,
    ending,
    kernel_kills,
    kills_may_be_ours,
    last_moments,
)
from holdfast.recorded_events import GuardAct
from holdfast.units import amount
from holdfast.vocabulary import Event, Evidence, Finding, Window, signal_name
from holdfast.windows import Reads, reads

ASKED = {
    signal.SIGTERM: ("terminated", "Asked to stop (SIGTERM)"),
    signal.SIGXCPU: ("terminated", "Stopped at its CPU-time limit (SIGXCPU)"),
    signal.SIGUSR1: ("terminated", "Stopped by SIGUSR1, which the script does not handle"),
    signal.SIGUSR2: ("terminated", "Stopped by SIGUSR2, which the script does not handle"),
    signal.SIGALRM: ("terminated", "Stopped by SIGALRM, a time limit"),
    signal.SIGINT: ("interrupted", "Interrupted (Ctrl-C)"),
    signal.SIGQUIT: ("interrupted", "Interrupted (Ctrl-\\, SIGQUIT)"),
    signal.SIGHUP: ("terminal-closed", "The terminal or session it ran in was closed (SIGHUP)"),
}
TIMED_OUT = 124
TIMEOUT_GIVEN = re.compile(
    r"(?:(?:-k ?|--kill-after[ =])(?P<grace>\d+(?:\.\d*)?[smhd]?) |(?:-s ?|--signal[ =])\w+ |-[vfp]+ |--(?:foreground|preserve-status|verbose) )*"
    r"(?P<limit>\d+(?:\.\d*)?[smhd]?) "
)
SECONDS_IN = {"m": 60.0, "h": 3600.0, "d": 86400.0}
LATE_S = 2.0  # start and end of a process are each seen up to a second late
SOON_S = 60.0  # a script that handles SIGTERM may save before it leaves
TIME_LIMIT = ENDING | KERNEL_KILLS | Reads(events=(*PROCESSES, GuardAct.STOPPED))


@reads(TIME_LIMIT, events=["signal.received", "preemption"])
def find_asked(window: Window) -> Finding | None:
    how = ending(window)
    if how is None or how.code == 0:
        return None
    if (limit := _at_the_limit_of_timeout(window, how)) is not None:
        return limit
    told = _told(window, how)
    number = how.signal if how.signal in ASKED else int(told.data["signal"]) if told else 0
    if number not in ASKED:
        return None
    cause, headline = ASKED[signal.Signals(number)]
    evidence = [how.evidence()]
    if told is not None and told.data["signal"] == number:
        evidence.insert(0, _sender(told))
    evidence += _let_through(window, how)
    if number == signal.SIGXCPU:
        evidence.append(Evidence("the kernel sends SIGXCPU when RLIMIT_CPU (ulimit -t) is used up", "exit", how.at))
    return Finding(cause, _sure(how, number), tuple(evidence), headline=headline)


def _at_the_limit_of_timeout(window: Window, how: Ending) -> Finding | None:
    """`timeout 2h python train.py` ends its child with SIGTERM and exits with 124; with `-k` or `-s KILL` it kills it."""
    started = [event for event in window.events(*PROCESSES) if event.data.get("name") == "timeout"]
    if how.code == TIMED_OUT and started:
        text = f"exit code {TIMED_OUT} of `timeout`: its time was over, and it ended the script"
    elif _killed_for_nothing_else(window, how) and any(_was_over(event, how) for event in started):
        text = "the script was killed when the time given to `timeout` was over"
    else:
        return None
    said = Evidence(text, "exit", how.at)
    return Finding("terminated", 0.93, (said,), headline="Stopped at the time limit given to `timeout`")


def _killed_for_nothing_else(window: Window, how: Ending) -> bool:
    return how.signal == signal.SIGKILL and not kernel_kills(window) and window.event(GuardAct.STOPPED) is None


def _was_over(timeout: Event, how: Ending) -> bool:
    given = TIMEOUT_GIVEN.match(str(timeout.data.get("command", "")).partition(" ")[2])
    if given is None or timeout.kind != "process.appeared":
        return False
    limit, grace = _seconds(given["limit"]), _seconds(given["grace"] or "0")
    return limit > 0 and -LATE_S < how.at - timeout.at - limit < grace + 2 * LATE_S


def _seconds(text: str) -> float:
    return float(text.rstrip("smhd")) * SECONDS_IN.get(text[-1], 1.0)


def _sure(how: Ending, number: int) -> float:
    """A signal that arrived explains an end by that signal; a script that handled it may have ended for another reason."""
    if how.signal == number:
        return 0.95 if how.direct else 0.7
    return 0.45 if number in (signal.SIGTERM, signal.SIGINT) else 0.2


def _told(window: Window, how: Ending) -> Event | None:
    """The last signal that arrived shortly before the end; it does not explain a crash or a kill."""
    if how.signal and how.signal not in ASKED:
        return None
    asked = [event for event in window.events("signal.received") if event.data["signal"] in ASKED]
    asked = [event for event in asked if 0 <= how.at - event.at + 0.5 < SOON_S]
    return asked[-1] if asked else None


def _let_through(window: Window, how: Ending) -> list[Evidence]:
    """Which warning signal came: one that the script does not handle ends it as SIGTERM would."""
    came = [event for event in window.events("preemption") if 0 <= how.at - event.at < SOON_S]
    text = "{} arrived at the training process, which was saved before it was let through"
    return [Evidence(text.format(event.data.get("signal")), "signal", event.at) for event in came[-1:]]


def _sender(event: Event) -> Evidence:
    number, pid, name = event.data["signal"], event.data.get("sender_pid"), event.data.get("sender_name")
    who = f" from {name} (pid {pid})" if name else " from the terminal or the kernel" if not pid else f" from pid {pid}"
    return Evidence(f"{signal_name(number)} arrived{who}", "signal", event.at, number)


@reads(
    TIME_LIMIT,
    KILL_COUNTS,
    latest=["host.memory_available_bytes"],
    course=["host.oom_kill_count"],
    events=["inside.hello"],
)
def find_killed(window: Window) -> Finding | None:
    how = ending(window)
    if how is None or how.signal != signal.SIGKILL or kernel_kills(window) or _at_the_limit_of_timeout(window, how):
        return None
    evidence = [how.evidence()]
    counters = [name for name in ("host.oom_kill_count", "cgroup.oom_kill_count") if window.last(name) is not None]
    moved = any(window.rise(name, last_moments(window)) > 0 for name in counters)
    if counters and not moved:
        evidence.append(Evidence("no out-of-memory kill was counted by the kernel", "telemetry", how.at, 0))
    elif moved and not kills_may_be_ours(window):
        evidence.append(
            Evidence("the kernel killed for memory meanwhile, but no process of this job", "kernel-log", how.at)
        )
    available = window.last("host.memory_available_bytes")
    if available is not None and available.value is not None:
        text = f"{amount(available.value, 'bytes')} of RAM were available at the last look"
        evidence.append(Evidence(text, "telemetry", available.at, available.value))
    confidence = 0.2 if moved and kills_may_be_ours(window) else _sure_it_was_killed(window, how) if counters else 0.4
    return Finding("killed", confidence, tuple(evidence), headline="Killed by somebody (SIGKILL), not for memory")


def _sure_it_was_killed(window: Window, how: Ending) -> float:
    """Exit code 137 is that of a killed child if the child ran here; `srun` and `docker run` may pass on one from elsewhere."""
    if how.direct:
        return 0.9
    return 0.85 if window.event("inside.hello") is not None else 0.4
