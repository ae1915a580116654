"""Checkpoints of Keras's `fit`: when one is due, what goes into it, and putting it back.

The state is taken between two steps, before the batch that is due is trained on. Taking it is short; a thread writes it.
"""

from __future__ import annotations

import os
import pickle
import weakref
from typing import Any, Callable, Optional

from .. import checkpoint_store
from ..background_save import Done, Saver
from ..headroom import left
from ..never_raise import guarded, outcome
from ..save_interval import Pace
from ..script_state.reopened_files import ReopenedFiles
from ..telemetry import LATER, Recorder, now
from .data_position import MADE, Position
from .saved_state import (
    ARRAYS,
    BackendState,
    Seeds,
    Taken,
    build_optimizers,
    callbacks_state,
    put_callbacks,
    put_variables,
    trained_by_each,
    variables_of,
)

REST = "rest.pickle"
FRAMEWORK = "keras"  # in manifests
NEVER = float("inf")
SPARE_BYTES = 128 << 20  # left to the step itself beside copies of all it updates
RETRY_S = 0.5  # while the last one is still being written

Step = Callable[[Any], Any]


class Call:
    """One `fit` of the script, by its number."""

    def __init__(self, number: int, model: Any, position: Position) -> None:
        self.number = number
        self.model: Callable[[], Any] = weakref.ref(model)
        self.position = position
        self.callbacks: list[Any] = []
        self.likeness: Optional[dict[str, Any]] = None
        self.random_at_entry: dict[str, Any] = {}
        self.restore: Optional[Saved] = None  # still to be put back, before the first step
        self.evaluation: Callable[[], Any] = lambda: None  # the epoch iterator of the validation data
        self.evaluations_made = 0
        self.began = now()


class Saved:
    """A checkpoint as read from disk."""

    def __init__(self, manifest: dict[str, Any]) -> None:
        self.manifest = manifest
        self.path = str(manifest["path"])
        checkpoint_store.check_owner(self.path)
        with open(os.path.join(self.path, REST), "rb") as file:
            self.rest: dict[str, Any] = pickle.load(file)

    @property
    def fit(self) -> int:
        return int(self.manifest["fit"])


class CheckpointWriter:
    def __init__(self, recorder: Recorder, state: BackendState, settings: dict[str, Any], seeds: Seeds) -> None:
        self.recorder = recorder
        self.state = state
        self.seeds = seeds
        self.saver = Saver(recorder, str(settings["directory"]))
        self.pace = Pace(settings.get("interval_s"))
        self.resume = bool(settings.get("resume"))
        self.reopened = ReopenedFiles()
        if self.resume and (checkpoint_store.newest(self.saver.directory) or {}).get("framework") == FRAMEWORK:
            self.reopened.install()
        self.call: Optional[Call] = None
        self.finished: list[dict[str, Any]] = []  # what each finished fit gave, by number
        self.next_at = NEVER  # read in every step
        self.due_at: Optional[float] = None  # the same, also between two fits
        self.step_ready = False
        self._iterator_state: Any = None
        self._done: Optional[Done] = None
        self.ending: Optional[Callable[[], None]] = None  # a signal came: save, then this
        self.is_sound: Callable[[], bool] = lambda: True  # whether the state is finite: it is not saved otherwise
        recorder.on_command("checkpoint", self._asked)

    # -- in every step

    def approach(self, iterator: Any) -> None:
        """A save is due: what must be taken before the batch is pulled. Called when the time has come, not before."""
        self.next_at = NEVER
        if self.call is not None:
            self.step_ready = True
            guarded(self._take_iterator)(iterator)

    def _take_iterator(self, iterator: Any) -> None:
        self._iterator_state = None
        call = self.call
        if call is not None and call.restore is None and call.position.needs_iterator_state():
            self._iterator_state = self.state.iterator_state(iterator)

    def aspect(self, step: Step) -> Step:
        def kept(batch: Any) -> Any:
            call = self.call
            if call is None:
                return step(batch)
            self.before_step(call)
            logs = step(batch)
            call.position.trained(1)
            return logs

        return kept

    def before_step(self, call: Call) -> None:
        if call.restore is not None:
            self.put_back(call)
        elif self.step_ready:
            self.step_ready = False
            if self.is_sound():
                self._save_now(call)
            else:
                self._left_out()

    def _left_out(self) -> None:
        """Weights that are not finite are nothing to go on from: the checkpoint before stays the newest."""
        self.next_at = self.due_at = self.pace.saved(now(), 0.0, self.saver.write_s)
        done, self._done = self._done, None
        if done is not None:
            done("the weights are not finite")
        if self.ending is not None:
            end, self.ending = self.ending, None
            end()

    @guarded
    def fresh(self, iterator: Any) -> None:
        """A new iterator, before its first batch."""
        if self.call is not None:
            self.call.position.first_pull(iterator)
            self.begin_pace()

    def begin_pace(self) -> None:
        if self.due_at is None:
            self.due_at = self.pace.began(now())
        if self.next_at == NEVER and not self.step_ready:
            self.next_at = self.due_at

    def cannot(self) -> None:
        """The step could not be taken apart."""
        reason = "this model's step cannot be taken apart"
        self.saver.complain(reason)
        if self.call is not None and self.call.restore is not None:
            raise checkpoint_store.mismatch(self.recorder, reason)

    # -- saving

    @guarded
    def _save_now(self, call: Call) -> None:
        done, self._done = self._done, None
        if self.saver.busy:
            if done is None and self.ending is None:
                self.next_at = self.due_at = now() + RETRY_S
                return
            self.saver.wait()
        pause_s = 0.0
        try:
            pause_s = self._begin_save(call, done)
        finally:
            self.next_at = self.due_at = self.pace.saved(now(), pause_s, self.saver.write_s)
        if self.ending is not None:
            end, self.ending = self.ending, None
            self.saver.wait()
            end()

    def _begin_save(self, call: Call, done: Optional[Done]) -> float:
        began = now()
        model = call.model()
        position = call.position.record()
        if self._iterator_state is not None:
            position["iterator"], self._iterator_state = self._iterator_state, None
        taken = Taken(variables_of(model), self.state)
        evaluation = call.evaluation()
        rest = {
            "index": taken.index,
            "trained": trained_by_each(model),
            "position": position,
            "random": self.state.random_state(),
            "random_at_entry": call.random_at_entry,
            "seeds": self.seeds.numbers(model),
            "callbacks": callbacks_state(call.callbacks),
            "likeness": call.likeness,
            "evaluations_made": call.evaluations_made if evaluation is None else getattr(evaluation, MADE, 0),
            "finished": list(self.finished),
        }
        manifest = {
            "framework": FRAMEWORK,
            "step": self.recorder.steps,
            "fit": call.number,
            "epoch": position["epoch"],
            "batch": position["batch"],
            "paused_s": round(now() - began, 6),
        }
        self._write(manifest, taken, rest, done)
        return now() - began

    def _write(self, manifest: dict[str, Any], taken: Taken, rest: dict[str, Any], done: Optional[Done] = None) -> None:
        """While it is being written, what training changes is copied: where there is no room for that, training waits."""
        size = taken.nbytes()
        groups = self.recorder.settings.get("groups")
        room = left(groups) if groups else None
        self.saver.begin(manifest, _filling(taken, rest), size, done)
        if room is not None and room.bytes < size + SPARE_BYTES:
            self.saver.wait()

    def save_finished(self, call: Call, keep: bool) -> None:
        """The end of a fit: the next attempt gives its result back instead of training again."""
        self.saver.wait()
        model = call.model()
        taken = Taken(variables_of(model), self.state)
        rest = {
            "index": taken.index,
            "trained": trained_by_each(model),
            "position": None,
            "finished": list(self.finished),
        }
        manifest = {
            "framework": FRAMEWORK,
            "step": self.recorder.steps,
            "fit": call.number + 1,
            "epoch": 0,
            "batch": 0,
            "keep": keep,
            "finished": call.number,
        }
        self._write(manifest, taken, rest)

    def _asked(self, command: dict[str, Any]) -> object:
        if self.call is None:
            return "no fit is under way"
        identity = command.get("id")
        self._done = lambda result: self.recorder.event("command.done", id=identity, do="checkpoint", result=result)
        self.next_at = 0.0
        return LATER

    def save_then(self, end: Callable[[], None]) -> bool:
        """At the next step. False where none is to come."""
        if self.call is None or self.call.restore is not None:
            return False
        self.ending = end
        self.next_at = 0.0
        return True

    # -- putting back

    def put_back(self, call: Call) -> None:
        saved, call.restore = call.restore, None
        assert saved is not None
        self.or_stop(self._put_back, call, saved)

    def _put_back(self, call: Call, saved: Saved) -> None:
        model = call.model()
        build_optimizers(model, saved.rest.get("trained"))
        put_variables(variables_of(model), saved.rest["index"], os.path.join(saved.path, ARRAYS), self.state)
        put_callbacks(call.callbacks, saved.rest["callbacks"])
        if not call.position.python_data:
            self.state.put_random_state(saved.rest["random"])
            self.seeds.put_numbers(model, saved.rest["seeds"])
        self.reopened.put_back()
        manifest = saved.manifest
        self.recorder.steps = int(manifest["step"])
        self.step_ready = False
        self.tell_restored(manifest)
        self.next_at = self.due_at = self.pace.began(now())

    def tell_restored(self, manifest: dict[str, Any]) -> None:
        told = {key: manifest[key] for key in ("number", "step", "fit", "epoch", "batch")}
        self.recorder.event("checkpoint.restored", **told)

    def or_stop(self, do: Callable[..., Any], *args: Any) -> Any:
        """What cannot be put back is not trained over: the run ends, its checkpoints are left as they are."""
        result, error = outcome(do, *args)
        if error is not None:
            self.reopened.put_back()
            raise checkpoint_store.mismatch(self.recorder, error)
        return result


def _filling(taken: Taken, rest: dict[str, Any]) -> Callable[[str], None]:
    def fill(place: str) -> None:
        taken.write(os.path.join(place, ARRAYS))
        with open(os.path.join(place, REST), "wb") as file:
            pickle.dump(rest, file, protocol=4)

    return fill


def load_newest(directory: str) -> Optional[Saved]:
    manifest = checkpoint_store.newest(directory)
    return None if manifest is None or manifest.get("framework") != FRAMEWORK else Saved(manifest)
