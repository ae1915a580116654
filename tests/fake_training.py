"""A script that trains nothing, yet counts steps and keeps checkpoints as a framework's part of Holdfast does."""

from __future__ import annotations

from tests.workplace import Workplace

FAKE_TRAINING = """
    import json, os, signal, sys, time
    import holdfast
    from holdfast.inside import checkpoint_store as store
    from holdfast.inside.api import _recorder

    SETTINGS = json.load(open(os.path.join(os.environ["HOLDFAST_CHANNEL"], "settings.json")))
    KEEP, ATTEMPT = SETTINGS.get("checkpoint"), SETTINGS["attempt"]
    STEPS, EVERY = 60, 10


    def save(step):
        # With the writer of Holdfast itself where it is there.
        if hasattr(store, "write"):
            number = store.write(KEEP["directory"], {"step": step}, lambda place: None)["number"]
        else:
            names = os.listdir(KEEP["directory"]) if os.path.isdir(KEEP["directory"]) else []
            number = max(map(int, filter(str.isdigit, names)), default=0) + 1
            final = os.path.join(KEEP["directory"], f"{number:08d}")
            os.makedirs(final + ".part")
            with open(os.path.join(final + ".part", "manifest.json"), "w") as file:
                json.dump({"step": step, "number": number}, file)
            os.rename(final + ".part", final)
        _recorder().event("checkpoint.saved", number=number, step=step)


    def die(number=signal.SIGKILL):
        time.sleep(0.15)  # the watcher has seen the steps
        os.kill(os.getpid(), number)
        time.sleep(10)


    found = store.newest(KEEP["directory"]) if KEEP and KEEP["resume"] else None
    begin = found["step"] if found else 0
    print("attempt", ATTEMPT, "from", begin, "k", (SETTINGS.get("rescue") or {}).get("k"), flush=True)
    if begin:
        _recorder().event("checkpoint.restored", number=found["number"], step=begin)
    for step in range(begin + 1, STEPS + 1):
        time.sleep(0.01)
        holdfast.step(loss=1 / step)
        if KEEP and step % EVERY == 0:
            save(step)
        fault(step)
    print("trained", STEPS, flush=True)
"""


def fake_training(workplace: Workplace, fault: str = "", before: str = "", name: str = "train.py") -> list[str]:
    """`fault` is Python with `step` and ATTEMPT in scope, run after every step; `before` runs first of all."""
    body = "\n".join(f"        {line}" for line in (fault or "pass").splitlines())
    head = "\n".join(f"    {line}" for line in before.splitlines())
    source = FAKE_TRAINING.replace("    found = ", f"    def fault(step):\n{body}\n\n    found = ", 1)
    return workplace.script(f"{head}\n{source}", name)
