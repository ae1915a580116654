"""The steps of this process that are watched: models that `fit` trains, functions of the script's own, eager loops."""

from __future__ import annotations

import weakref
from typing import Any, Callable, Optional

from ...never_raise import guarded
from ...telemetry import Recorder
from .function_watch import FunctionWatch, Given

WATCHED = "_holdfast_watched"  # on a tf.function that trains: what is called in its place, with its arguments


class Watches:
    def __init__(self, recorder: Recorder, tf: Any) -> None:
        self._recorder, self._tf = recorder, tf
        self._all: Any = weakref.WeakSet()

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

    @guarded
    def watch_function(
        self, function: Any, call: Callable[..., Any], optimizer: Optional[Callable[[], Any]], given: Given
    ) -> None:
        """After its first call, which has made its variables."""
        watch = FunctionWatch(self._recorder, self._tf, function, optimizer or (lambda: None))
        watch.given = given
        there = weakref.ref(function)
        watched = watch.aspect(lambda given: call(there(), *given[0], **given[1]))
        watch.begin()
        if watch.flight is not None:
            self.add(watch)
            function.__dict__[WATCHED] = watched
