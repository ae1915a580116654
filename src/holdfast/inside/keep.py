"""`holdfast.keep(…)`: checkpoints for a loop of one's own, in few lines. Without `holdfast run` it is that loop and no more.

The data is found again by repeating: the random state at the making of the loader's iterator is put back, and the
batches that were trained on are taken without training. Then everything is put back as it was at the save.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Callable, Optional

from . import checkpoint_store, randomness
from .background_save import Done, Saver
from .never_raise import guarded, outcome
from .preemption import Preemption
from .save_interval import Pace
from .telemetry import LATER, Recorder, now

STATE = "state.pt"
NEVER = float("inf")


class Keep:
    """What a loop needs to go on: things with `state_dict()` by reference, plain values and arrays through `update`."""

    def __init__(self, recorder: Optional[Recorder], things: dict[str, Any]) -> None:
        self._things = things
        self._recorder = recorder
        self._saver: Optional[Saver] = None
        self._next_at = NEVER
        self._loops = 0
        self._epoch = 0
        self._goal: Optional[dict[str, Any]] = None
        self._done: Optional[Done] = None
        self._ending: Optional[Callable[[], None]] = None
        self._training = False
        self.step = 0  # batches trained on, over all attempts
        wanted = recorder.settings.get("checkpoint") if recorder is not None else None
        if recorder is not None and wanted:
            guarded(self._begin)(recorder, wanted)

    # -- for the script

    def update(self, **values: Any) -> None:
        """Values that are replaced and not changed in place: parameters of JAX, a best loss so far."""
        self._things.update(values)

    def __getitem__(self, name: str) -> Any:
        """As it is now; after a restart, as it was saved, once the loop has begun."""
        return self._things[name]

    def epochs(self, count: int) -> Iterator[int]:
        """Numbers of the epochs that are still to be trained, with `batches` inside."""
        self._enter_loop()
        if self._goal is not None and self._goal["loop"] > self._loops - 1:
            return  # this loop was finished by an earlier attempt
        first = self._goal["epoch"] if self._goal is not None else 0
        for epoch in range(first, count):
            self._epoch = epoch
            yield epoch
        self._leave_loop()

    def batches(self, loader: Iterable[Any], epochs: Optional[int] = None) -> Iterator[Any]:
        """The batches of one epoch, inside `epochs`; or, with a number of epochs, (epoch, batch) over all of them."""
        if epochs is None:
            yield from self._one_epoch(loader)
            return
        for epoch in self.epochs(epochs):
            for batch in self._one_epoch(loader):
                yield epoch, batch

    # -- the loop

    def _one_epoch(self, loader: Iterable[Any]) -> Iterator[Any]:
        goal, self._goal = self._goal, None
        for part in (loader, getattr(loader, "sampler", None), getattr(loader, "dataset", None)):
            set_epoch = getattr(part, "set_epoch", None)
            if set_epoch is not None:
                set_epoch(self._epoch)
        if goal is not None:
            self._or_stop(_put_random, goal["at_making"], loader)
        at_making = _random_state(loader) if self._saver is not None else {}
        iterator = iter(loader)
        number = 0
        if goal is not None:
            number = self._or_stop(self._go_on, iterator, goal, loader)
        for batch in iterator:
            self._training = True
            yield batch
            number += 1
            self.step += 1
            if now() >= self._next_at:
                self._save(number, at_making, loader)

    def _go_on(self, iterator: Iterator[Any], goal: dict[str, Any], loader: Any) -> int:
        for _ in range(goal["batch"]):
            next(iterator, None)
        self._put_things(goal["things"])
        _put_random(goal["random"], loader)
        self.step = int(goal["step"])
        assert self._recorder is not None
        if not self._recorder.by_hand:
            self._recorder.steps = self.step
        told = {key: goal["manifest"][key] for key in ("number", "step", "fit", "epoch", "batch")}
        self._recorder.event("checkpoint.restored", **told)
        return int(goal["batch"])

    def _enter_loop(self) -> None:
        self._loops += 1
        if self._saver is not None and self._next_at == NEVER:
            self._next_at = self._pace.began(now())

    def _leave_loop(self) -> None:
        self._training = False

    # -- saving

    def _begin(self, recorder: Recorder, wanted: dict[str, Any]) -> None:
        saver = Saver(recorder, str(wanted["directory"]))
        if not saver.claim():
            saver.complain("another process of this run trains and saves already")
            return
        self._pace = Pace(wanted.get("interval_s"))
        self._saver = saver
        recorder.on_command("checkpoint", self._asked)
        Preemption(recorder, self._save_then).install()
        manifest = checkpoint_store.newest(saver.directory) if wanted.get("resume") else None
        if manifest is not None:
            self._goal = self._or_stop(_load, manifest)
            self._or_stop(self._check_names, self._goal)

    def _save(self, batch: int, at_making: dict[str, Any], loader: Any) -> None:
        guarded(self._save_guarded)(batch, at_making, loader)
        if self._ending is not None:
            end, self._ending = self._ending, None
            end()

    def _save_guarded(self, batch: int, at_making: dict[str, Any], loader: Any) -> None:
        assert self._saver is not None
        assert self._recorder is not None
        done, self._done = self._done, None
        if self._saver.busy:
            if done is None and self._ending is None:
                self._next_at = now() + 0.5
                return
            self._saver.wait()
        began = now()
        self._next_at = self._pace.saved(began, 0.0, self._saver.write_s)  # also where the state cannot be taken
        place = {"loop": self._loops - 1, "epoch": self._epoch, "batch": batch, "step": self.step}
        things = {name: _taken(thing) for name, thing in self._things.items()}
        state = {**place, "at_making": at_making, "random": _random_state(loader), "things": things}
        pause_s = now() - began
        manifest: dict[str, Any] = {"framework": "torch" if "torch" in sys.modules else "python", "step": self.step}
        manifest |= {"fit": self._loops - 1, "epoch": self._epoch, "batch": batch, "paused_s": round(pause_s, 6)}
        self._saver.begin(manifest, lambda folder: _write(state, os.path.join(folder, STATE)), 0, done)
        self._next_at = self._pace.saved(now(), pause_s, self._saver.write_s)
        if self._ending is not None:
            self._saver.wait()

    def _asked(self, command: dict[str, Any]) -> object:
        if not self._training or self._recorder is None:
            return "no loop is under way"
        recorder, identity = self._recorder, command.get("id")
        self._done = lambda result: recorder.event("command.done", id=identity, do="checkpoint", result=result)
        self._next_at = 0.0
        return LATER

    def _save_then(self, end: Callable[[], None]) -> bool:
        if not self._training:
            return False
        self._ending = end
        self._next_at = 0.0
        return True

    # -- putting back

    def _check_names(self, goal: dict[str, Any]) -> None:
        missing = sorted(set(goal["things"]) - set(self._things))
        if missing:
            raise ValueError(f"{', '.join(missing)} was saved and is not given to keep()")

    def _put_things(self, saved: dict[str, Any]) -> None:
        for name, (kind, value) in saved.items():
            if kind == "state_dict":
                self._things[name].load_state_dict(value)
            else:
                self._things[name] = value

    def _or_stop(self, do: Callable[..., Any], *args: Any) -> Any:
        """What cannot be put back is not trained over."""
        result, error = outcome(do, *args)
        if error is None:
            return result
        assert self._recorder is not None
        raise checkpoint_store.mismatch(self._recorder, error)


def _taken(thing: Any) -> tuple[str, Any]:
    """A copy, since training changes tensors in place."""
    if hasattr(thing, "state_dict") and hasattr(thing, "load_state_dict"):
        return "state_dict", _copied(thing.state_dict())
    return "value", _copied(thing)


def _copied(value: Any) -> Any:
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, dict):
        return (
            type(value)((key, _copied(item)) for key, item in value.items())
            if type(value) is not dict
            else {key: _copied(item) for key, item in value.items()}
        )
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_copied(item) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_copied(item) for item in value)
    if hasattr(value, "__array__") and not isinstance(value, (int, float)):
        numpy: Any = sys.modules["numpy"]
        return value if isinstance(value, numpy.generic) else numpy.array(value)
    return value


def _write(state: dict[str, Any], path: str) -> None:
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.save(state, path)
    else:
        with open(path, "wb") as file:
            pickle.dump(state, file, protocol=4)


def _load(manifest: dict[str, Any]) -> dict[str, Any]:
    torch: Any = sys.modules.get("torch")
    checkpoint_store.check_owner(str(manifest["path"]))
    with open(os.path.join(str(manifest["path"]), STATE), "rb") as file:
        data = io.BytesIO(file.read())
    state = torch.load(data, map_location="cpu", weights_only=False) if torch is not None else pickle.load(data)
    return {**state, "manifest": manifest}


def _random_state(loader: Any) -> dict[str, Any]:
    state = randomness.capture()
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        state["torch"] = torch.get_rng_state()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            state["cuda"] = torch.cuda.get_rng_state_all()
        state["generators"] = [generator.get_state() for generator in _generators(loader)]
    return state


def _put_random(state: dict[str, Any], loader: Any) -> None:
    randomness.restore(state)
    torch: Any = sys.modules.get("torch")
    if torch is not None and "torch" in state:
        torch.set_rng_state(state["torch"])
        if "cuda" in state and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(state["cuda"])
        for generator, saved in zip(_generators(loader), state["generators"]):
            generator.set_state(saved)


def _generators(loader: Any) -> list[Any]:
    """Of a DataLoader and its samplers, each once."""
    found: list[Any] = []
    for one in (
        loader,
        getattr(loader, "sampler", None),
        getattr(getattr(loader, "batch_sampler", None), "sampler", None),
    ):
        generator = getattr(one, "generator", None)
        if generator is not None and not any(generator is other for other in found):
            found.append(generator)
    return found
