"""Starts the script as it would start without Holdfast, in a session of its own: signal mask, ignored signals, OOM score."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import struct
import termios
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.actions.job_cgroups import Groups, bring_in
from holdfast.inside import rank_identity, ring_location, settings
from holdfast.inside.preemption import WIRE
from holdfast.supervisor import budget, known_micro_batches, signals
from holdfast.supervisor.guard.cgroup_placement import contain_in_scope
from holdfast.supervisor.hardening import restore_oom_score
from holdfast.supervisor.launch_priority import give_way, lowers_priority, turn_of
from holdfast.supervisor.run_spec import RunSpec
from holdfast.supervisor.stdin_replay import StdinReplay
from holdfast.supervisor.streams import Streams
from holdfast.vocabulary import Policy

BOOTSTRAP = Path(__file__).parent.parent / "inside" / "bootstrap"


class CannotStart(Exception):
    def __init__(self, errno: int) -> None:
        super().__init__(os.strerror(errno))
        self.errno = errno


class Launcher:
    """Starts the script; every attempt is started like the first one."""

    def __init__(
        self, spec: RunSpec, streams: Streams, signal_mask: set[int], oom_score: str | None, groups: Groups
    ) -> None:
        self._spec = spec
        self.groups = groups
        self.about_scope: dict[str, str | float] = {}  # for the record, where one was needed
        self._lowers_priority = lowers_priority(spec.policy, os.environ)
        self.priority: dict[
            str, int | None
        ] = {}  # the job's at processors and disks, for the record, where it was changed
        self._streams = streams
        self._signal_mask = signal_mask
        self._oom_score = oom_score
        # Before the watcher handles them itself: what `nohup` had ignored stays so in every attempt.
        self._ignored = {number for number in signals.FORWARDED if signal.getsignal(number) is signal.SIG_IGN}
        self._modes = termios.tcgetattr(streams.slave) if streams.slave is not None else None
        self.input = StdinReplay(streams)

    def ignores(self, number: int) -> bool:
        return number in self._ignored

    def start(self, attempt: int, again: bool, k: int | None) -> int:
        """Returns the pid once the kernel has accepted the program."""
        spec = self._spec
        if attempt > 1:
            _take_away_rings(spec.channel)
        leave_settings(spec, attempt, again, k)
        command = [*spec.command, *(_words_to_resume(spec) if again and spec.resume_args else [])]
        if attempt > 1 and self._modes is not None and self._streams.slave is not None:
            with contextlib.suppress(termios.error):  # a script that died may have left the terminal in raw mode
                termios.tcsetattr(self._streams.slave, termios.TCSANOW, self._modes)
        self.input.about_to_start()
        former = signal.pthread_sigmask(signal.SIG_BLOCK, signals.HANDLED)
        try:
            return self._fork(command, script_environment(os.environ, spec))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, former)

    def contain(self, script_pid: int) -> None:
        """After the start and after the relay was told: moving a process between cgroups takes the kernel some 12 ms."""
        bring_in(self.groups, script_pid)

    def contain_first(self, script_pid: int, relay_pid: int) -> None:
        """The same for the first attempt: a scope that has to be made for it stays for the others."""
        if self._lowers_priority:
            self.priority = turn_of(script_pid)
        if self._spec.policy == Policy.PROTECT:
            with contextlib.suppress(OSError):
                self.groups, self.about_scope = contain_in_scope(self.groups, relay_pid, script_pid)
        self.contain(script_pid)

    def _fork(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        told, tell = os.pipe()
        with warnings.catch_warnings(
            action="ignore"
        ):  # Python warns of threads at a fork; the child uses none of their locks
            pid = os.fork()
        if pid == 0:
            try:
                os.close(told)
                self._become(command, environment)
            except OSError as error:
                os.write(tell, struct.pack("<i", error.errno or 0))
            finally:
                os._exit(127)
        os.close(tell)
        answer = os.read(told, 4)  # closed by a successful exec
        os.close(told)
        if answer:
            os.waitpid(pid, 0)
            raise CannotStart(struct.unpack("<i", answer)[0])
        return pid

    def _become(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        os.setsid()
        if self._streams.slave is not None:
            fcntl.ioctl(self._streams.slave, termios.TIOCSCTTY, 0)
        # Duplicated first: one of the descriptors may itself be 0, 1 or 2.
        copies = [
            fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) if fd > 2 or fd != i else fd
            for i, fd in enumerate((self.input.fd, *self._streams.script_fds[1:]))
        ]
        for target, copy in enumerate(copies):
            if copy != target:
                os.dup2(copy, target, inheritable=True)
        restore_oom_score(self._oom_score)
        if self._lowers_priority:
            give_way()
        for number in signals.FORWARDED:
            signal.signal(number, signal.SIG_IGN if number in self._ignored else signal.SIG_DFL)
        for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(ignored_by_python, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._signal_mask)
        os.execvpe(command[0], list(command), dict(environment))


def _words_to_resume(spec: RunSpec) -> list[str]:
    from holdfast.supervisor.script_checkpoints import words_to_resume  # noqa: PLC0415 - few need it

    return words_to_resume(spec.resume_args, spec.cwd, spec.began)


def script_environment(environment: Mapping[str, str], spec: RunSpec) -> dict[str, str]:
    """All that the script's environment gains; README.md lists it. What the user has set stays; `observe` sets nothing."""
    if spec.policy == "observe":
        return dict(environment)
    # A native crash prints the Python stack of every thread.
    gained = {"PYTHONFAULTHANDLER": "1", **_hash_seed(spec, environment), **environment}
    if spec.channel is not None:
        paths = [str(BOOTSTRAP), *filter(None, [environment.get("PYTHONPATH")])]
        gained |= {"PYTHONPATH": os.pathsep.join(paths), "HOLDFAST_CHANNEL": str(spec.channel)}
    return gained


def leave_settings(spec: RunSpec, attempt: int = 1, again: bool = False, k: int | None = None) -> None:
    """What the part inside the training process is to do in this attempt. A disk that takes nothing means it only watches."""
    if spec.channel is None or spec.directory is None:
        return
    wanted: dict[str, Any] = {"policy": spec.policy, "attempt": attempt}
    if spec.checkpoints is not None:
        interval_s = None if spec.checkpoint == "auto" else spec.checkpoint
        wanted["checkpoint"] = {"directory": str(spec.checkpoints), "interval_s": interval_s, "resume": again}
        if rank_identity.of(os.environ) is not None:
            wanted["checkpoint"]["one_rank"] = True  # of several, each with a run of its own
    wanted["groups"] = budget.groups()
    wanted |= budget.rescue_settings(spec, k=k or known_micro_batches.recall(spec))
    with contextlib.suppress(OSError):
        (spec.channel / settings.FILE).write_text(json.dumps(wanted))


def _hash_seed(spec: RunSpec, environment: Mapping[str, str]) -> dict[str, str]:
    """Only where checkpoints are kept. Python iterates over a set of strings in another order in each process, so the
    order of the data could differ after a restart; and the seed cannot be set once Python runs."""
    if spec.checkpoints is None or "PYTHONHASHSEED" in environment:
        return {}
    path = spec.checkpoints / "hash-seed"
    with contextlib.suppress(OSError):
        spec.checkpoints.mkdir(mode=0o700, exist_ok=True)
        if not path.exists():
            path.write_text(str(int.from_bytes(os.urandom(4), "little")))
        return {"PYTHONHASHSEED": path.read_text()}
    return {}


def _take_away_rings(channel: Path | None) -> None:
    """Those of an attempt that is over have been read; the next one's process may bear the same number."""
    if channel is None:
        return
    ring_location.clear(str(channel))
    for path in (*channel.glob("*.ring"), *channel.glob(f"*{WIRE}")):
        with contextlib.suppress(OSError):
            path.unlink()


def reap() -> dict[int, int]:
    """Collects every child that has ended: pid -> wait status."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = status
