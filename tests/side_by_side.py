"""Tests run beside each other, except those that must have the machine to themselves (`pytest.mark.alone`).

A test that only waits shares the machine. One that is killed for memory does not: the kernel's counters are everybody's,
and another test's verdict would be drawn from them. Nor does one that measures time or fills what all of them use.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ALONE = "alone"
SHARED_SCOPES = ("class", "module", "package", "session")
# Modules whose tests take longest, by `--durations`: begun first, so that none of them is what all wait for at the end.
LONGEST = (
    "test_keras_rescue", "test_trainers", "test_keras_numerics", "test_keras_traced_graphs", "test_torch_rescue", "test_unedited_resume",
    "test_resume", "test_keras_loops", "test_tensorflow", "test_keras", "test_checkpoints_do_no_harm", "test_cut_ranks", "test_recipes",
    "test_keras_saved_state", "test_torch", "test_of_the_tests",
)  # fmt: skip


class Machine:
    """Held by all workers together, or by one. Whoever wants it alone closes the door first, so that nobody starves it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._door = os.open(f"{path}.door", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        self._room = os.open(f"{path}.room", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        self.is_mine = False

    def share(self) -> None:
        fcntl.flock(self._door, fcntl.LOCK_SH)
        fcntl.flock(self._room, fcntl.LOCK_SH)
        fcntl.flock(self._door, fcntl.LOCK_UN)

    def take(self) -> None:
        if not self.is_mine:
            fcntl.flock(self._door, fcntl.LOCK_EX)
            fcntl.flock(self._room, fcntl.LOCK_EX)
            self.is_mine = True

    def leave(self) -> None:
        fcntl.flock(self._room, fcntl.LOCK_UN)
        fcntl.flock(self._door, fcntl.LOCK_UN)
        self.is_mine = False

    def remove(self) -> None:
        for name in ("door", "room"):
            Path(f"{self.path}.{name}").unlink(missing_ok=True)


@functools.cache
def machine(run: str) -> Machine:
    return Machine(Path(tempfile.gettempdir(), f"holdfast-tests-{run}"))


def is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


@pytest.hookimpl(wrapper=True, tryfirst=True)  # around everything: waiting for the machine is not the test's time
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    if not is_worker(item.config):
        return (yield)
    here = machine(item.config.workerinput["testrunuid"])  # type: ignore[attr-defined]
    if wants_to_be_alone(item):
        here.take()
    else:
        here.share()
    try:
        return (yield)
    finally:
        if not (here.is_mine and nextitem is not None and wants_to_be_alone(nextitem)):
            here.leave()


# -- which worker gets what: xdist's own groups are part of a test's name, which pytest 9.2 does not let it change


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if is_worker(config):
        items.sort(key=_turn)
        groups = {item.nodeid: group for item in items if (group := group_of(item))}
        path = groups_file(config.workerinput["testrunuid"])  # type: ignore[attr-defined]
        new = path.with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps(groups))
        new.replace(path)  # all workers write the same


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False  # in the order of `_turn`

    class ByGroup(LoadScopeScheduling):  # type: ignore[misc]
        """A group, or one test, at a time."""

        @functools.cached_property
        def groups(self) -> dict[str, str]:
            found: dict[str, str] = json.loads(groups_file(config.stash[RUN]).read_text())
            return found

        def _split_scope(self, nodeid: str) -> str:
            return self.groups.get(nodeid, nodeid)

    return ByGroup(config, log)


def groups_file(run: str) -> Path:
    return Path(tempfile.gettempdir(), f"holdfast-tests-{run}.groups")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    run = session.config.stash.get(RUN, "")
    if run:
        machine(run).remove()
        groups_file(run).unlink(missing_ok=True)


RUN = pytest.StashKey[str]()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """In the process that hands out the tests: how this run of them is called."""
    node.config.stash[RUN] = node.workerinput["testrunuid"]


def _turn(item: pytest.Item) -> int:
    """The longest first. Those that want the machine alone come last: whoever is in the middle of a long test would be waited for by all."""
    if wants_to_be_alone(item):
        return len(LONGEST) + 1
    return LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST)


def wants_to_be_alone(item: pytest.Item) -> bool:
    return item.get_closest_marker(ALONE) is not None


def group_of(item: pytest.Item) -> str:
    """Tests of one group run in one worker, one after the other."""
    if wants_to_be_alone(item):
        return ALONE
    return item.path.stem if _shares_with_others(item) else ""


def _shares_with_others(item: pytest.Item) -> bool:
    """Whether it uses what another test of its module has made: a fixture of theirs, or a function that remembers."""
    module = getattr(item, "module", None)
    fixtures = getattr(item, "_fixtureinfo", None)
    if module is None or fixtures is None:
        return False
    made = (made for found in fixtures.name2fixturedefs.values() for made in found)
    if any(one.scope in SHARED_SCOPES and one.baseid == item.nodeid.split("::")[0] for one in made):
        return True
    return any(hasattr(value, "cache_clear") and value.__module__ == module.__name__ for value in vars(module).values())
