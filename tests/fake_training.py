"""A script that trains nothing, yet counts steps and keeps checkpoints as a framework's part of Holdfast does."""

from __future__ import annotations

from tests.workplace import Workplace

FAKE_TRAINING = """
    import json, os, signal, sys, time
    import holdfast
    from holdfast.inside.api import _recorder

    SETTINGS = json.load(open(os.path.join(os.environ["HOLDFAST_CHANNEL"], "settings.json")))
    KEEP, ATTEMPT = SETTINGS.get("checkpoint"), SETTINGS["attempt"]
    STEPS, EVERY = 60, 10


    def save(number, step):
        final = os.path.join(KEEP["directory"], f"{number:08d}")
        os.makedirs(final + ".part")
        with open(os.path.join(final + ".part", "manifest.json"), "w") as file:
            json.dump({"step": step, "number": number}, file)
        os.rename(final + ".part", final)
        _recorder().event("checkpoint.saved", number=number, step=step)


    def newest():
        names = [name for name in os.listdir(KEEP["directory"]) if name.isdigit()] if os.path.isdir(KEEP["directory"]) else []
        if not (KEEP["resume"] and names):
            return 0, 0
        return int(max(names)), json.load(open(os.path.join(KEEP["directory"], max(names), "manifest.json")))["step"]


    def die(number=signal.SIGKILL):
        time.sleep(0.15)  # the watcher has seen the steps
        os.kill(os.getpid(), number)
        time.sleep(10)


    number, begin = newest() if KEEP else (0, 0)
    print("attempt", ATTEMPT, "from", begin, "k", (SETTINGS.get("rescue") or {}).get("k"), flush=True)
    if begin:
        _recorder().event("checkpoint.restored", number=number, step=begin)
    for step in range(begin + 1, STEPS + 1):
        time.sleep(0.01)
        holdfast.step(loss=1 / step)
        if KEEP and step % EVERY == 0:
            number += 1
            save(number, step)
        fault(step) if "fault" in globals() else None
    print("trained", STEPS, flush=True)
"""


def fake_training(workplace: Workplace, fault: str = "", before: str = "", name: str = "train.py") -> list[str]:
    """`fault` is Python with `step` and ATTEMPT in scope, run after every step; `before` runs first of all."""
    body = "\n".join(f"        {line}" for line in (fault or "pass").splitlines())
    head = "\n".join(f"    {line}" for line in before.splitlines())
    source = FAKE_TRAINING.replace("    number, begin = ", f"    def fault(step):\n{body}\n\n    number, begin = ", 1)
    return workplace.script(f"{head}\n{source}", name)
