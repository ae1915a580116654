"""A bounded queue between two threads that either side can close: nobody waits for one that is gone."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Closed(Exception):
    """The other side is gone, and nothing is left to be taken."""


class Handover(Generic[Item]):
    def __init__(self, most: int) -> None:
        self._most = most
        self._items: deque[Item] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, item: Item) -> None:
        with self._changed:
            while len(self._items) >= self._most and not self._closed:
                self._changed.wait()
            if self._closed:
                raise Closed
            self._items.append(item)
            self._changed.notify_all()

    def get(self) -> Item:
        with self._changed:
            while not self._items and not self._closed:
                self._changed.wait()
            if not self._items:
                raise Closed
            item = self._items.popleft()
            self._changed.notify_all()
            return item

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
