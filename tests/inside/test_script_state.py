"""Where a script stands and what its variables hold: taken in one place, put back in another. No framework is needed."""

from __future__ import annotations

import collections
import hashlib
import io
import random
import sys
import textwrap
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import numpy as np
import pytest

from holdfast.inside.script_state import frame_variables, frames, loop_heads, numpy_kinds, source_position, variables
from holdfast.inside.script_state.begun_further_on import BegunFurtherOn
from holdfast.inside.script_state.live_names import live_after
from holdfast.inside.script_state.object_graph import Graph, Traits
from holdfast.inside.script_state.object_restore import Restoration
from holdfast.inside.script_state.refusal import CannotPutBack, CannotTake

TRAITS = Traits(lambda _value: False, lambda _owner, _name, _value: False, lambda kind: kind.__new__(kind))


class Items:
    """Data whose iterator calls `hook` with the frame that asks, as a framework's part does."""

    def __init__(self, hook: Any, count: int = 3) -> None:
        self.hook, self.left = hook, count

    def __iter__(self) -> Items:
        return self

    def __next__(self) -> int:
        self.hook(sys._getframe(1), self)
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return self.left


class tqdm:
    def __init__(self, iterable: Any) -> None:
        self.iterable = iterable

    def __enter__(self) -> tqdm:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def __iter__(self) -> Any:
        yield from self.iterable


tqdm.__module__ = "tqdm.std"


def ran(tmp_path: Path, text: str, hook: Any, before: Any = None, **names: Any) -> dict[str, Any]:
    """Runs a script from a file of its own, as `__main__` would be run."""
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(text))
    module = ModuleType("script")
    module.__file__ = str(path)
    vars(module).update(Items=Items, tqdm=tqdm, hook=hook, **names)
    sys.modules["script"] = module
    try:
        if before is not None:
            before()
        exec(compile(path.read_text(), str(path), "exec"), vars(module))
    finally:
        del sys.modules["script"]
    return vars(module)


def is_items(value: Any) -> bool:
    return isinstance(value, Items)


def places(tmp_path: Path, text: str) -> list[Any]:
    """For each time the script asks for an item: (kind, value) of the loops around, or why it cannot be left there."""
    found: list[Any] = []

    def hook(frame: FrameType, _items: Items) -> None:
        try:
            standing = source_position.standing(frame)
            loop_heads.check_source(frame, standing, is_items)
            found.append([(head.kind, head.value) for head in loop_heads.taken(frame, standing, is_items)])
        except CannotTake as refusal:
            found.append(str(refusal))

    ran(tmp_path, text, hook)
    return found


HEADS = [
    pytest.param("for epoch in range(2, 4):\n    for x in Items(hook, 1): pass", [("range", 2)], id="range"),
    pytest.param("for n, at in enumerate(range(0, 6, 3)):\n    for x in Items(hook, 1): pass", [("range", 3)], id="enumerated range"),
    pytest.param("def f():\n    for e in range(1):\n        for i, x in enumerate(Items(hook)): pass\nf()", [("range", 0)], id="function"),
    pytest.param("for rate in [0.1, 0.2]:\n    for x in Items(hook, 1): pass", [("sequence", 1)], id="constants"),
    pytest.param("rates = [3, 4]\nfor rate in rates:\n    for x in Items(hook, 1): pass", [("sequence", 1)], id="list"),
    pytest.param("rates = [3, 4]\nfor n, rate in enumerate(rates, 1):\n    for x in Items(hook, 1): pass", [("sequence", 2)], id="numbered list"),
    pytest.param("with tqdm(range(2, 4)) as bar:\n    for e in bar:\n        for x in Items(hook, 1): pass", [("range", 3)], id="held bar"),
    pytest.param("from itertools import count\nfor n in count(2):\n    for x in Items(hook, 1): pass\n    if n == 3: break", [("range", 3)], id="count"),
    pytest.param("widths = {'a': 3, 'b': 4}\nfor name, width in widths.items():\n    for x in Items(hook, 1): pass", [("sequence", 1)], id="dict"),
    pytest.param("pairs = [1, 2]\nfor a, b in zip(pairs, (3, 4)):\n    for x in Items(hook, 1): pass", [("sequence", 2)], id="zip of lists"),
    pytest.param("from glob import iglob\nfor n, name in enumerate(iglob('/*')):\n    for x in Items(hook, 1): pass\n    break", [("counted", 0)], id="numbered generator of a library"),
    pytest.param("class Run: pass\nrun = Run()\nfor run.epoch in range(2):\n    for x in Items(hook, 1): pass", [("range", 1)], id="attribute"),
    pytest.param("while True:\n    it = iter(Items(hook))\n    x = next(it)\n    break", [], id="next"),
    pytest.param("def f():\n    yield from Items(hook)\nfor x in f(): pass", [], id="generator"),
    pytest.param("data = Items(hook)\nfor x in data:\n    for y in data: break", [("followed", 0)], id="loader around"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), HEADS)
def test_loops_around_a_place_are_known(tmp_path: Path, text: str, expected: list[Any]) -> None:
    found = places(tmp_path, text)
    assert expected in found and not any(isinstance(one, str) for one in found), found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("total = 1\ndef f():\n    for x in Items(hook): pass\n    return 1\ntotal += f()", None),
        ("best = 1\nbest = max(best, sum(Items(hook)))", "`best` was read before"),
        ("total = 1\ntotal += next(iter(Items(hook)))", "`total` was read before"),
        ("found = []\nfound += [next(iter(Items(hook)))]", None),
        ("for x, y in zip(range(3), Items(hook)): pass", "range(3)"),
        ("both = zip(range(3), Items(hook))\nfor x in both: pass", "`both`"),
        ("import itertools\nfor x in itertools.islice(Items(hook), 2): pass", "islice"),
        ("for i in range(2):\n    i = 5\n    for x in Items(hook): pass", "is written in it, too"),
        ("for k in {'a': 1}.items():\n    for x in Items(hook): pass", "cannot be begun further on"),
        (
            "for n in range(1):\n    try: next(iter([]))\n    except StopIteration: x = next(iter(Items(hook)))",
            "handles an exception",
        ),
        ("values = list(Items(hook))", "inside a call"),
    ],
)
def test_a_place_that_cannot_be_entered_again_is_refused(tmp_path: Path, text: str, said: str | None) -> None:
    found = places(tmp_path, text)
    assert found and all((said in str(one)) if said else one == [] for one in found), found


def test_a_frame_of_the_caller_that_has_read_a_value_is_refused(tmp_path: Path) -> None:
    refused: list[str] = []

    def hook(frame: FrameType, _items: Items) -> None:
        with pytest.raises(CannotTake) as refusal:
            source_position.standing(frame.f_back)  # type: ignore[arg-type]
        refused.append(str(refusal.value))

    ran(tmp_path, "total = 1\ndef f():\n    for x in Items(hook): pass\n    return 1\ntotal += f()", hook)
    assert "`total` was read before the call on line 5" in refused[0]


def test_only_what_may_still_be_read_is_live(tmp_path: Path) -> None:
    seen: list[set[str]] = []
    text = """
        def train(model, unused):
            total = 0.0
            for x in Items(hook, 1):
                loss = x
                total += loss
            try:
                return total
            finally:
                model.close()
        train(type("M", (), {"close": lambda self: None})(), 3)
    """
    ran(tmp_path, text, lambda frame, _items: seen.append(live_after(frame.f_code, frames.instruction_of(frame))))
    assert {"total", "model"} <= seen[0] and not {"unused", "loss", "x"} & seen[0]


def test_local_variables_of_a_running_frame_are_written(tmp_path: Path) -> None:
    text = """
        def outer():
            count, cell = 1, "old"
            def inner():
                return cell
            for x in Items(hook, 1): pass
            return count, inner()
        result = outer()
    """
    names = ran(tmp_path, text, lambda frame, _items: frame_variables.write(frame, {"count": 7, "cell": "new"}))
    assert names["result"] == (7, "new")


class Meter:
    shared: list[int] = []  # noqa: RUF012

    def __init__(self, model: Any) -> None:
        self.model, self.values, self.chance = model, collections.deque(maxlen=3), random.Random(1)


def restored(saved: Any, live: Any) -> Any:
    graph = Graph([], TRAITS)
    ref = graph.take(saved)
    restoration = Restoration(graph.nodes, [], TRAITS)
    restoration.bind(ref, live)
    found = restoration.object_of(ref)
    restoration.fill()
    return found


def test_objects_get_their_content_in_place_and_stay_one_where_they_were_one() -> None:
    model, other = {"w": [1, 2]}, {"w": [0, 0]}
    saved, live = [Meter(model), model, (1, model)], [Meter(other), other, (1, other)]
    saved[0].values.extend("abcd")
    saved[0].late = saved[0]
    saved[0].chance.random()
    live[0].gone = "by now"
    meter = live[0]
    found = restored(saved, live)
    assert found is live and live[0] is meter and meter.late is meter and not hasattr(meter, "gone")
    assert meter.model is other and other == {"w": [1, 2]} and live[2][1] is other
    assert list(meter.values) == ["b", "c", "d"] and meter.chance.getstate() == saved[0].chance.getstate()


def test_two_that_have_become_different_do_not_stay_one() -> None:
    one: list[int] = []
    found = restored({"best": [1], "last": [2]}, {"best": one, "last": one})
    assert found == {"best": [1], "last": [2]}


def test_what_belongs_to_the_process_is_left_as_it_is(tmp_path: Path) -> None:
    with (tmp_path / "a").open("w") as old, (tmp_path / "b").open("w") as new:
        meter, live = Meter(old), Meter(new)
        assert restored(meter, live).model is new
        with pytest.raises(CannotPutBack, match="TextIOWrapper"):
            restored([old], [])


def test_closures_defaults_and_classes_of_the_user_are_state() -> None:
    def counter(start: int, seen: list[int] = []) -> Any:  # noqa: B006
        count = start

        def step() -> int:
            nonlocal count
            count += 1
            seen.append(count)
            return count

        return step

    first, second = counter(5, [1]), counter(0, [])
    assert restored(first, second) is second and second() == 6


def test_iterators_go_on_where_they_were_and_hashes_are_refused() -> None:
    def made() -> list[Any]:
        return [
            iter([5, 6, 7]),
            zip([1, 2], "ab", strict=True),
            map(str, range(2)),
            reversed([1, 2]),
            iter({3: 4, 5: 6}.items()),
        ]

    saved = made()
    assert [next(one) for one in saved] == [5, (1, "a"), "0", 2, (3, 4)]
    assert [list(one) for one in restored(saved, made())] == [[6, 7], [(2, "b")], ["1"], [1], [(5, 6)]]
    text, live = io.StringIO("old"), io.StringIO()
    assert (
        text.read() == "old" and restored(text, live) is live and live.write("er") == 2 and live.getvalue() == "older"
    )
    digest = hashlib.sha256()
    assert restored([digest], [hashlib.sha256()])[0].digest() == digest.digest()
    digest.update(b"loss")
    with pytest.raises(CannotTake, match="sha256"):
        restored([digest], [hashlib.sha256()])


def test_a_large_file_that_is_only_read_is_left_as_it_is_opened_and_known_by_some_values(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_bytes(bytes(range(256)) * 8192)
    (tmp_path / "others").write_bytes(bytes(256 * 8192))

    def opened(name: str) -> Any:
        return np.memmap(tmp_path / name, dtype=np.uint16, mode="r")

    graph = Graph(numpy_kinds.kinds(), TRAITS)
    ref = graph.take(opened("tokens"))
    assert isinstance(graph.nodes[0].parts, int)
    live = opened("tokens")
    restoration = Restoration(graph.nodes, numpy_kinds.kinds(), TRAITS)
    restoration.bind(ref, live)
    assert restoration.object_of(ref) is live
    with pytest.raises(CannotPutBack, match="another one than before"):
        Restoration(graph.nodes, numpy_kinds.kinds(), TRAITS).bind(ref, opened("others"))


LOOPS = """
    def train(epochs):
        for epoch in range(epochs):
            items = []
            for i, x in enumerate(Items(hook, 4), 1):
                items.append(i)
            done.append((epoch, items))
    train(2)
    done.append("again")
    kinds = {"short": lambda: train(1)}
    kinds["short"]()
    for fold in range(3):
        train(2)
    total, sizes, letters, parts = 0, {"a": 1, "b": 2}, ["x", "y", "z"], [5, 7]
    def scaled(size):
        for x in Items(hook, 4):
            done.append(size * x)
        return size
    for name, size in sizes.items():
        for rate, part in zip((2, 3), parts):
            for turn, letter in enumerate(letters):
                total += scaled(size * rate * part + turn)
            done.append((name, letter, total))
"""


NAMES = ("items", "epoch", "done", "fold", "total")


class Stopped(Exception):
    pass


@pytest.mark.parametrize("stop_at", [1, 3, 12, 17, 23, 33, 48, 66, 77, 99])
def test_a_script_that_is_started_again_ends_as_if_it_had_never_stopped(tmp_path: Path, stop_at: int) -> None:
    taken: dict[str, Any] = {}
    calls: list[int] = []

    def saving(frame: FrameType, items: Items) -> None:
        calls.append(1)
        if len(calls) == stop_at:
            found = of_script(frame)
            graph = Graph([], TRAITS)
            taken["names"] = [
                {name: graph.take(value) for name, value in one.f_locals.items() if name in NAMES} for one in found
            ]
            taken["heads"] = [loop_heads.taken(one, source_position.standing(one), is_items) for one in found]
            read = [source_position.standing(one).read for one in found]
            taken["read"] = [
                {name: one.f_locals[name] for name in names} for one, names in zip(found, read, strict=True)
            ]
            taken.update(chain=frames.stands(found), nodes=graph.nodes, left=items.left)
            raise Stopped

    def going_on(frame: FrameType, items: Items) -> None:
        found = of_script(frame)
        if plan.resumed_items is None and frames.stands(found) == taken["chain"]:
            restoration = Restoration(taken["nodes"], [], TRAITS)
            state = {"frames": taken["names"], "modules": {"script": taken["names"][0]}}
            variables.bind(restoration, state, found)
            variables.put_back(restoration, state, found)
            plan.remove()
            plan.resumed_items, items.left = 4 - taken["left"], taken["left"]

    undisturbed = ran(tmp_path, LOOPS, lambda *_: None, done=[])["done"]
    with pytest.raises(Stopped):
        ran(tmp_path, LOOPS, saving, done=[])
    plan = BegunFurtherOn(taken["chain"], taken["heads"], ["script"], lambda do, *args: do(*args), read=taken["read"])
    plan.users = of_script  # type: ignore[method-assign]
    names = ran(tmp_path, LOOPS, going_on, plan.install, done=[])
    assert plan.resumed_items is not None
    assert names["done"] == undisturbed[len(undisturbed) - len(names["done"]) :] == undisturbed
    assert "range" not in names and "enumerate" not in names


def of_script(frame: FrameType | None) -> list[FrameType]:
    """Without the frames of this test."""
    return [one for one in frames.users(frame) if one.f_code.co_filename.endswith("script.py")]
