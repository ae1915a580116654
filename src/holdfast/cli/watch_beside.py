from __future__ import annotations

import argparse
import json
import os
import select
import sys
import time
from pathlib import Path

from holdfast.cli.run_store import new_run
from holdfast.supervisor.hardening import lock_memory, lower_oom_score
from holdfast.supervisor.run_spec import RunSpec
from holdfast.vocabulary import Policy

CHECK_S = 0.5  # how soon the end of the process is noticed


class WatchBesideVerb:
    """Watches a process that is running already; `holdfast.attach()` starts it. Not for the command line."""

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--pid", type=int, required=True)
        parser.add_argument("--policy", choices=(str(Policy.OBSERVE), str(Policy.ADVISE)), default=str(Policy.ADVISE))
        parser.add_argument("--name", default="")
        parser.add_argument("--dir")

    def run(self, options: argparse.Namespace) -> int:
        from holdfast.supervisor.tick import Watch  # noqa: PLC0415

        directory, _ = new_run(options.dir, options.name)
        command = tuple(Path(f"/proc/{options.pid}/cmdline").read_text().split("\0")[:-1])
        notebook = os.environ.get("JPY_SESSION_NAME", "")
        policy = Policy(options.policy)
        spec = RunSpec(
            command, directory, Path.cwd(), policy=policy, name=options.name, attached=True, notebook=notebook
        )
        watch = Watch(spec, "watcher", options.pid, say=lambda _: False)
        answer = {"run": directory.name, "directory": str(directory)} if directory else {"run": "", "directory": ""}
        print(json.dumps(answer | {"channel": str(spec.channel or "")}), flush=True)
        _let_go()
        lower_oom_score()
        lock_memory()
        process = os.pidfd_open(options.pid)
        due = 0.0
        while not _ended(process):
            if time.monotonic() >= due:
                due = time.monotonic() + watch.tick(time.time())
            _ended(process, min(CHECK_S, max(0.0, due - time.monotonic())))
        watch.closing_look(time.time())
        watch.script_gone()
        watch.event("run.end")
        watch.close()
        return 0


def _ended(process: int, patience_s: float = 0.0) -> bool:
    return bool(select.select([process], [], [], patience_s)[0])


def _let_go() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
