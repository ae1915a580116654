"""The few words for custom loops and notebooks: `holdfast.attach()`, `step(…)`, `keep(…)` and `backward(…)`."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any, Callable, Optional

from . import notebook_panel
from .frameworks import IMPORTS
from .keep import Keep
from .never_raise import guarded
from .telemetry import Recorder, now
from .user_errors import passing

PATIENCE_S = 20.0
WATCHING = {"observe": "observe"}  # beside a process that was not started by us, everything else is "advise"


class _Loop:
    def __init__(self) -> None:
        self.last = 0.0
        self.asked = False
        self.watcher: Optional[subprocess.Popen[bytes]] = None
        self.run = ""
        self.directory = ""


_loop = _Loop()


def attach(policy: str = "advise", name: str = "", dir: Optional[str] = None) -> str:
    """Starts a watcher beside this process, a notebook's kernel say; returns the run's id.

    It watches and tells, and changes nothing: what is to be survived needs `holdfast run`, so "protect" means "advise"
    here. In a notebook a small panel shows how the run stands and, first of all, what became of a kernel that died.
    Under `holdfast run` a watcher is there already and nothing more is started. Where it cannot be started, the program
    goes on unwatched and the result is "".
    """
    if _recorder() is not None or _loop.run:
        channel = os.environ.get("HOLDFAST_CHANNEL", "")
        notebook_panel.show(os.path.dirname(channel) if channel else _loop.directory, first=False)
        return os.path.basename(os.path.dirname(channel)) or _loop.run
    run = _start_beside(WATCHING.get(policy, "advise"), name, dir) or ""
    if run:
        notebook_panel.show(_loop.directory, first=True)
    return run


def step(
    loss: Any = None,
    epoch: Optional[int] = None,
    batch_shape: Optional[tuple[int, ...]] = None,
    wait_s: float = 0.0,
    learning_rate: Optional[float] = None,
) -> None:
    """One training step of a loop of your own is over. A few microseconds; nothing where nobody watches.

    `loss` may live on a device: it is read some tenths of a second later. From the first call on, this is what counts
    as a step, and not what Holdfast sees in the framework.
    """
    recorder = _recorder()
    if recorder is not None:
        _step(recorder, loss, epoch, batch_shape, wait_s, learning_rate)


def keep(**things: Any) -> Keep:
    """Checkpoints for a loop of your own: `keep(model=model, optimizer=optimizer)`, then loop over `keep.batches(…)`.

    Under `holdfast run` the loop is saved as it runs and goes on at its batch after a restart; elsewhere it is the
    plain loop. Models, optimizers, schedulers, scalers: anything with `state_dict`; other values through `update`.
    """
    return Keep(_recorder(), things)


def backward(model: Any, loss_of: Callable[..., Any], *batch: Any, reduction: str = "mean", scaler: Any = None) -> Any:
    """Forward and backward of a batch in PyTorch, in micro-batches where memory runs out; returns the loss, detached.

        loss = holdfast.backward(model, lambda x, y: criterion(model(x), y), x, y)

    stands for `loss = criterion(model(x), y); loss.backward()`. The loss is to be a mean over the rows, or a sum with
    `reduction="sum"`; `scaler` is the GradScaler where one is used. It works without `holdfast run`, too.
    """
    from .torch.backward_call import backward as rescued

    with passing:
        return rescued(model, loss_of, batch, reduction, scaler, _Told())


class _Told:
    """The recorder there is when something is to be told, with the step it is of; without one, nobody is."""

    @property
    def settings(self) -> dict[str, Any]:
        recorder = _recorder()
        return recorder.settings if recorder is not None else {}

    @property
    def steps(self) -> int:
        recorder = _recorder()
        return recorder.steps if recorder is not None else 0

    def phase(self, name: str) -> None:
        recorder = _recorder()
        if recorder is not None:
            recorder.phase(name)

    def event(self, kind: str, **data: Any) -> None:
        recorder = _recorder()
        if recorder is not None:
            recorder.event(kind, **{"step": recorder.steps + 1, **data})

    def cut(self, k: int, where: str) -> None:
        recorder = _recorder()
        if recorder is not None:
            recorder.cut(k, where)


@guarded
def _step(
    recorder: Recorder,
    loss: Any,
    epoch: Optional[int],
    batch_shape: Optional[tuple[int, ...]],
    wait_s: float,
    learning_rate: Optional[float],
) -> None:
    moment = now()
    if not recorder.by_hand:
        recorder.by_hand = True
        recorder.steps = 0
        recorder.phase("train")
        _loop.last = moment
    if epoch is not None:
        recorder.epoch(epoch)
    if batch_shape is not None:
        recorder.batch(tuple(batch_shape))
    recorder.waited(wait_s)
    recorder.count_step(max(0.0, moment - _loop.last - wait_s))
    _loop.last = moment
    if loss is not None and recorder.wants("loss"):
        read = _reading(loss)
        if read is not None:
            recorder.offer("loss", read)
    if learning_rate is not None and recorder.wants("learning_rate"):
        rate = learning_rate
        recorder.offer("learning_rate", lambda: float(rate))


def _reading(loss: Any) -> Optional[Callable[[], Optional[float]]]:
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(loss, torch.Tensor):
        from .torch.deferred_reads import reading

        return reading(torch, loss.detach())
    return lambda: _number(loss)


def _number(value: Any) -> Optional[float]:
    """Not before the device is done with it: JAX arrays can tell."""
    ready = getattr(value, "is_ready", None)
    return float(value) if ready is None or ready() else None


def _recorder() -> Optional[Recorder]:
    """Of the part that `holdfast run` loaded, or of our own after `attach`."""
    for name in ("holdfast_inside.start", f"{__package__}.start"):
        start = sys.modules.get(name)
        found = start.recorder() if start is not None else None
        if found is not None:
            return found  # type: ignore[no-any-return]
    channel = os.environ.get("HOLDFAST_CHANNEL", "")
    if channel and not _loop.asked:  # under `holdfast run`, with no framework imported so far
        _loop.asked = True
        _take_up(channel)
        return _recorder()
    return None


@guarded
def _take_up(channel: str) -> None:
    from . import start

    if os.path.isdir(channel):
        sys.modules.setdefault("holdfast_inside.start", start)
        start.open_channel(channel)


@guarded
def _start_beside(policy: str, name: str, directory: Optional[str]) -> Optional[str]:
    command = [sys.executable, "-m", "holdfast", "beside", "--pid", str(os.getpid()), "--policy", policy]
    command += ["--name", name] if name else []
    command += ["--dir", directory] if directory else []
    _loop.watcher = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    assert _loop.watcher.stdout is not None
    answer = json.loads(_loop.watcher.stdout.readline() or b"{}")
    _loop.watcher.stdout.close()
    _loop.run = str(answer.get("run", ""))
    _loop.directory = str(answer.get("directory", ""))
    channel = answer.get("channel")
    if channel:
        _adapt(str(channel))
    return _loop.run


def _adapt(channel: str) -> None:
    """Takes up the frameworks that are imported already, and those to come."""
    from . import start

    start.open_channel(channel)
    here = os.path.dirname(os.path.abspath(__file__))
    spec = spec_from_file_location("holdfast_bootstrap", os.path.join(here, "bootstrap", "sitecustomize.py"))
    assert spec is not None and spec.loader is not None
    bootstrap = module_from_spec(spec)
    spec.loader.exec_module(bootstrap)
    waiting = bootstrap._Waiting(here, channel)
    waiting.load = lambda: start
    sys.modules.setdefault("holdfast_inside.start", start)
    sys.meta_path.insert(0, waiting)
    for framework in IMPORTS:
        if framework in sys.modules:
            start.imported(framework, channel)
    atexit.register(_goodbye)


@guarded
def _goodbye() -> None:
    recorder = _recorder()
    if recorder is not None:
        recorder.event("inside.goodbye")
