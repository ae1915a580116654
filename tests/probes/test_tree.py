from __future__ import annotations

import pytest

from holdfast.probes import Missing
from holdfast.probes.tree import Tree, belongs

from .machine import SCRIPT, WATCHER, FakeMachine


def test_the_tree_is_every_descendant_of_the_watcher_and_nobody_else(machine: FakeMachine) -> None:
    machine.process(1, 0, name="init")
    machine.process(WATCHER, 1, name="holdfast")
    machine.process(SCRIPT, WATCHER)
    machine.process(110, SCRIPT, name="worker")
    machine.process(111, 110, name="grandchild")
    machine.process(112, WATCHER, name="orphan")
    machine.process(120, 1, name="sshd")
    assert sorted(Tree(machine.scope()).refresh()) == [SCRIPT, 110, 111, 112]


def test_newcomers_are_found_and_the_gone_forgotten(machine: FakeMachine) -> None:
    machine.process(WATCHER, 1)
    machine.process(SCRIPT, WATCHER)
    tree = Tree(machine.scope())
    tree.refresh()
    machine.process(150, SCRIPT)
    assert sorted(tree.refresh()) == [SCRIPT, 150]
    machine.no_process(150)
    assert sorted(tree.refresh()) == [SCRIPT]


def test_a_stranger_is_read_once_only(machine: FakeMachine) -> None:
    machine.process(1, 0)
    machine.process(SCRIPT, WATCHER)
    machine.process(200, 1)
    tree = Tree(machine.scope())
    tree.refresh()
    machine.process(200, SCRIPT)  # cannot happen to a living process
    assert sorted(tree.refresh()) == [SCRIPT]


def test_a_process_id_used_again_is_another_process(machine: FakeMachine) -> None:
    machine.process(1, 0)
    machine.process(SCRIPT, WATCHER)
    machine.process(150, SCRIPT, started=5)
    tree = Tree(machine.scope())
    tree.refresh()
    machine.process(150, 1, started=9)
    assert sorted(tree.refresh()) == [SCRIPT]


def test_a_name_may_hold_anything(machine: FakeMachine) -> None:
    machine.process(SCRIPT, WATCHER, name="a) S 1 (b")
    assert Tree(machine.scope()).refresh()[SCRIPT].name == "a) S 1 (b"


def test_belonging_is_found_by_climbing(machine: FakeMachine) -> None:
    machine.process(SCRIPT, WATCHER)
    machine.process(110, SCRIPT)
    machine.process(111, 110)
    machine.process(200, 1)
    assert belongs(machine.scope(), 111)
    assert not belongs(machine.scope(), 200)
    assert not belongs(machine.scope(), 99999)


def test_without_proc_there_is_no_tree(machine: FakeMachine) -> None:
    with pytest.raises(Missing, match="no processes to see"):
        Tree(machine.scope())
