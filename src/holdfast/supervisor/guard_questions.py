"""What the guard asks of the training process, passed on by the watcher, and the answers on their way back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from holdfast.supervisor.ring_samples import RingSamples
from holdfast.vocabulary import Event

ANSWER_PACE_S = 0.05  # the guard has asked because memory is about to end
WAITED_FOR_S = 10.0  # then the watcher goes back to its own pace; an answer is passed on whenever it comes


class GuardQuestions:
    """The guard listens on `on_answer`."""

    def __init__(self) -> None:
        self.on_answer: Callable[[Event], None] = lambda event: None
        self._asked_at = float("-inf")

    def ask(self, training: RingSamples | None, do: str, id: str) -> bool:
        self._asked_at = time.time()
        return training is not None and training.send(do=do, id=id)

    def hear(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.kind == "command.done":
                self._asked_at = float("-inf")
                self.on_answer(event)

    @property
    def waiting(self) -> bool:
        """Asked, and not answered yet: the ring carries one command at a time."""
        return time.time() - self._asked_at < WAITED_FOR_S

    def pace_s(self, now: float) -> float:
        return ANSWER_PACE_S if now - self._asked_at < WAITED_FOR_S else float("inf")

    def forget(self) -> None:
        """The process that was asked has ended."""
        self._asked_at = float("-inf")
