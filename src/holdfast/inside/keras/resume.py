"""Running the script again: a fit that was finished gives its result back, the interrupted one goes on at its batch."""

from __future__ import annotations

import functools
import inspect
import os
import pickle
import sys
import weakref
from typing import Any, Callable, Optional

from .. import checkpoint_store
from ..never_raise import guarded, on_error
from ..telemetry import now
from . import seams
from .checkpoint import Call, CheckpointWriter, Saved, load_newest
from .data_position import MADE, Position, check_same_data, likeness, make_again
from .plain_copies import put_back
from .saved_state import (
    ARRAYS,
    SeedsOfModel,
    build_optimizers,
    callbacks_state,
    put_callbacks,
    put_variables,
    variables_of,
)

MANY = 20
SHORT = 50.0  # a fit shorter than so many of its saves is not worth one of its own


class Fits:
    """The `fit` calls of a script, in order."""

    def __init__(self, keeper: CheckpointWriter, take_signals: Callable[[], None] = lambda: None) -> None:
        self.keeper = keeper
        self._take_signals = take_signals  # not before a fit: a script that only predicts keeps its own
        self._count = 0
        self._models: list[Callable[[], Any]] = []
        self._looked = False
        self._saved: Optional[Saved] = None

    def wrap(self, raw: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(raw)

        @functools.wraps(raw)
        def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
            call = self_.enters(self)
            if call is None:
                return raw(self, *args, **kwargs)
            keeper = self_.keeper
            if call.restore is not None:
                try:
                    bound = signature.bind(self, *args, **kwargs)
                except TypeError:
                    self_.leaves(call)
                    return raw(self, *args, **kwargs)  # says it in Keras's own words
                if call.restore.fit > call.number:
                    given = keeper.or_stop(self_.give_back, call, bound)
                    self_.leaves(call)
                    return given if given is not None else raw(self, *args, **kwargs)
                keeper.or_stop(self_.go_on, call, bound)
                args, kwargs = bound.args[1:], bound.kwargs
            try:
                with on_error(lambda _error: self_.leaves(call)):
                    result = raw(self, *args, **kwargs)
                self_.ends(call, result)
            finally:
                call.position.let_go()
            return result

        self_ = self
        return fit

    @guarded
    def enters(self, model: Any) -> Optional[Call]:
        keeper = self.keeper
        if keeper.call is not None:
            return None  # a fit inside a fit is part of the outer one
        number, self._count = self._count, self._count + 1
        self._number_of(model)
        refused = self._refused(model)
        if refused:
            keeper.saver.complain(refused)
            return None
        call = Call(number, model, Position(keeper.state, SeedsOfModel(keeper.seeds, model), keeper.or_stop))
        call.restore = self._to_restore(number)
        if call.restore is None:
            keeper.reopened.put_back()
        call.random_at_entry = keeper.state.random_state()
        keeper.call = call
        self._take_signals()
        return call

    def _refused(self, model: Any) -> str:
        refused = self.keeper.state.why_not(model)
        if not refused and not self.keeper.saver.claim():
            return "another process of this run trains and saves already"
        return refused

    def _to_restore(self, number: int) -> Optional[Saved]:
        if not self._looked:
            self._looked = True
            if self.keeper.resume:
                self._saved = self.keeper.or_stop(load_newest, self.keeper.saver.directory)
                if (
                    self._saved is None
                    and checkpoint_store.newest(self.keeper.saver.directory) is None
                    and checkpoint_store.numbers(self.keeper.saver.directory)
                ):
                    self.keeper.saver.complain("none of the checkpoints is whole")
                    print("holdfast: none of this run's checkpoints is whole; training begins anew.", file=sys.stderr)
                if self._saved is not None:
                    self.keeper.finished = list(self._saved.rest["finished"])
        return (
            self._saved
            if self._saved is not None and number <= self._saved.fit and not self._done_with(number)
            else None
        )

    def _done_with(self, number: int) -> bool:
        """The end of a fit was the last thing saved: the next one begins as usual, from there."""
        assert self._saved is not None
        return number == self._saved.fit and self._saved.rest["position"] is None

    # -- the interrupted one

    def go_on(self, call: Call, bound: inspect.BoundArguments) -> None:
        saved = call.restore
        assert saved is not None
        call.random_at_entry = saved.rest["random_at_entry"]
        self.keeper.state.put_random_state(call.random_at_entry)
        call.evaluations_made = saved.rest["evaluations_made"]
        call.position.go_to(saved.rest["position"])
        bound.arguments["initial_epoch"] = saved.rest["position"]["epoch"]

    @guarded
    def before_training(self, callback_list: Any) -> None:
        """A log file goes on where it was: opened anew, it would lose what the earlier attempts wrote."""
        call = self.keeper.call
        if call is not None and call.restore is not None:
            for callback in callback_list.callbacks:
                if type(callback).__name__ == "CSVLogger":
                    callback.append = True

    def trains(self, callback_list: Any) -> None:
        """`on_train_begin` is over: callbacks have begun, as they do; another tool's idea of the epoch is not ours."""
        call = self.keeper.call
        if call is not None and not call.callbacks:
            call.callbacks = list(callback_list.callbacks)
            if call.restore is not None:
                seams.begin_at_the_given_epoch(call.model())

    def iterates(self, epoch_iterator: Any, validating: bool) -> None:
        call = self.keeper.call
        if call is None:
            return
        model = call.model()
        if validating:
            if epoch_iterator is seams.evaluation_iterator(model):
                self._evaluates(call, epoch_iterator)
            return
        if not call.callbacks:
            return  # Keras looks at a batch to build the model, and begins again
        if call.likeness is None:
            call.likeness = likeness(epoch_iterator)
            if call.restore is not None:
                self.keeper.or_stop(check_same_data, call.likeness, call.restore.rest["likeness"])
            refused = self.keeper.state.why_not(model, epoch_iterator.data_adapter)
            if refused:
                self.keeper.saver.complain(refused)
                self.leaves(call)
                return
        if call.restore is None:
            call.position.iterates(epoch_iterator)
        else:
            self.keeper.or_stop(call.position.iterates, epoch_iterator)

    def _evaluates(self, call: Call, epoch_iterator: Any) -> None:
        if call.evaluation() is None:
            call.evaluation = weakref.ref(epoch_iterator)
            make_again(epoch_iterator, call.evaluations_made)

    def epoch_begins(self, epoch: int) -> None:
        if self.keeper.call is not None:
            self.keeper.call.position.epoch = epoch

    # -- the end of one

    @guarded
    def leaves(self, call: Call) -> None:
        keeper = self.keeper
        keeper.call, keeper.next_at, keeper.step_ready = None, float("inf"), False

    @guarded
    def ends(self, call: Call, history: Any) -> None:
        keeper = self.keeper
        self.leaves(call)
        if call.likeness is None:
            return
        record = {
            "number": call.number,
            "likeness": call.likeness,
            "random": keeper.state.random_state(),
            "callbacks": callbacks_state(call.callbacks),
            "data": call.position.at_the_end(),
            "evaluations_made": getattr(call.evaluation(), MADE, call.evaluations_made),
            "step": keeper.recorder.steps,
            "model": self._number_of(call.model()),
        }
        keeper.finished.append({**record, "callbacks": pickle.dumps(record["callbacks"], 4)})
        lasted = now() - call.began
        worth_it = lasted > SHORT * keeper.saver.write_s
        if worth_it or (keeper.due_at is not None and now() >= keeper.due_at):
            keeper.save_finished(call, keep=worth_it)
            keeper.due_at = keeper.pace.saved(now(), 0.0, keeper.saver.write_s)

    # -- a finished one

    def give_back(self, call: Call, bound: inspect.BoundArguments) -> Any:
        """The result it had, the model, the callbacks and the randomness as it left them.

        None where it was not finished, or so short that its model was not kept: then it is run again, as it was.
        """
        keeper = self.keeper
        record = next((one for one in keeper.finished if one["number"] == call.number), None)
        model = call.model()
        kept = self._kept(call.number)
        if (
            record is None
            or (kept is None and not self._one_of_many(record))
            or (model.run_eagerly and not model.built)
        ):
            return None
        bound.apply_defaults()
        given = bound.arguments
        self.keeper.state.put_random_state(call.random_at_entry)
        epoch_iterator, validation = self._iterators(model, given)
        check_same_data(likeness(epoch_iterator), record["likeness"])
        self.keeper.state.put_random_state(record["random"])
        callback_list: Any = seams.callback_list_class()(
            given["callbacks"],
            add_history=True,
            add_progbar=False,
            verbose=given["verbose"],
            epochs=given["epochs"],
            steps=epoch_iterator.num_batches,
            model=model,
        )
        if kept is not None:
            self._put_model(kept, model, epoch_iterator)
        put_callbacks(callback_list.callbacks, pickle.loads(record["callbacks"]))
        make_again(epoch_iterator, record["data"]["made"])
        if validation is not None:
            make_again(validation, record["evaluations_made"])
        adapter = epoch_iterator.data_adapter
        if hasattr(adapter, "py_dataset"):
            put_back(adapter.py_dataset, {n: pickle.loads(p) for n, p in record["data"]["attributes"].items()})
        self.keeper.state.put_random_state(record["random"])
        keeper.recorder.steps = int(record["step"])
        if kept is not None and self._saved is not None and kept.manifest["number"] == self._saved.manifest["number"]:
            keeper.tell_restored(kept.manifest)
        return model.history

    def _iterators(self, model: Any, given: dict[str, Any]) -> tuple[Any, Any]:
        """As `fit` makes them from its arguments."""
        x, y, weight, validation = given["x"], given["y"], given["sample_weight"], given["validation_data"]
        if given["validation_split"] and validation is None:
            (x, y, weight), _ = seams.train_validation_split((x, y, weight), given["validation_split"])
        make = functools.partial(self.keeper.state.epoch_iterator, model)
        training = make(
            x=x, y=y, sample_weight=weight, batch_size=given["batch_size"], steps_per_epoch=given["steps_per_epoch"],
            shuffle=given["shuffle"], class_weight=given["class_weight"],
        )  # fmt: skip
        training.reset()
        if type(validation).__name__.endswith("Dataset"):
            return training, make(x=validation)
        return training, None

    def _kept(self, number: int) -> Optional[Saved]:
        kept = [m for m in checkpoint_store.all_of(self.keeper.saver.directory) if m.get("finished") == number]
        whole = checkpoint_store.read(kept[-1]["path"]) if kept else None
        return None if whole is None else Saved(whole)

    def _one_of_many(self, record: dict[str, Any]) -> bool:
        """A loop of short fits over one model: not each is kept, and a later one brings the model."""
        later = [one for one in self.keeper.finished if one["number"] > record["number"]]
        return len(later) >= MANY and any(one["model"] == record["model"] for one in later)

    def _put_model(self, kept: Saved, model: Any, epoch_iterator: Any) -> None:
        model.make_train_function()
        self.keeper.state.build(model, epoch_iterator)
        build_optimizers(model, kept.rest.get("trained"))
        put_variables(variables_of(model), kept.rest["index"], os.path.join(kept.path, ARRAYS), self.keeper.state)

    def _number_of(self, model: Any) -> int:
        for number, known in enumerate(self._models):
            if known() is model:
                return number
        self._models.append(weakref.ref(model))
        return len(self._models) - 1
