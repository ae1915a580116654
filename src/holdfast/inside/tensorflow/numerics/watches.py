"""The steps of this process that are watched: models that `fit` trains, functions of the script's own, eager loops."""

from __future__ import annotations

import atexit
import math
import os
import weakref
from typing import Any, Callable, Iterable, Optional

from ...never_raise import guarded
from ...telemetry import Recorder
from .. import seams
from .function_watch import FunctionWatch, Given
from .snapshot import Snapshot

WATCHED = "_holdfast_watched"  # on a tf.function that trains: what is called in its place, with its arguments


class Watches:
    def __init__(self, recorder: Recorder, tf: Any) -> None:
        self._recorder, self._tf = recorder, tf
        self._all: Any = weakref.WeakSet()
        self.measured: Callable[[], None] = lambda: None
        self.off = False  # names are missing that looks at loops need
        self._process = os.getpid()
        atexit.register(self._script_ends)
        self._first: Any = weakref.WeakKeyDictionary()  # by function: its weights before its first step

    def add(self, watch: Any) -> None:
        self._all.add(watch)

    def __len__(self) -> int:
        return len(self._all)

    @guarded
    def assigned(self, variable: Any, value: Any) -> None:
        for watch in list(self._all):
            watch.assigned(variable, value)

    @guarded
    def between_steps(self, share: float) -> None:
        for watch in list(self._all):
            watch.between_steps(share)

    def any_sick(self) -> bool:
        return any(watch.sick for watch in list(self._all) if watch.is_alive())

    @guarded
    def _script_ends(self) -> None:
        """What the last steps did is told; it is too late to mend it."""
        if os.getpid() != self._process:
            return  # a fork's state is its parent's to tell
        self._recorder.settings = {**self._recorder.settings, "policy": "advise"}
        for watch in list(self._all):
            watch.between_steps(math.inf)

    @guarded
    def traced(self, functions: Iterable[Any], graph: Any) -> None:
        """While a step is traced for the first time: its weights are as they will be before its first update."""
        for function in functions if not self.off else ():
            if WATCHED not in function.__dict__ and function not in self._first:
                with self._tf.init_scope():
                    there = seams.variables_read(graph)
                    self._first[function] = Snapshot(there, self._recorder.steps)

    @guarded
    def watch_function(
        self, function: Any, call: Callable[..., Any], optimizer: Optional[Callable[[], Any]], given: Given, result: Any
    ) -> None:
        """After its first call, which has made its variables."""
        if self.off:
            return
        first = self._first.pop(function, None)
        watch = FunctionWatch(self._recorder, self._tf, function, optimizer or (lambda: None))
        watch.given, watch.measured = given, self.measured
        there = weakref.ref(function)
        watched = watch.aspect(lambda given: call(there(), *given[0], **given[1]))
        watch.begin()
        if watch.flight is not None:
            self.add(watch)
            function.__dict__[WATCHED] = watched
            watch.first_step(first, result)
