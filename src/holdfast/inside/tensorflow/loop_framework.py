"""TensorFlow's part in checkpoints of loops: variables and tensors, Keras's objects, random numbers, tf.data."""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, List, Optional, Tuple

from ..keras import seams as keras_seams
from ..keras.loop_objects import KerasKinds
from ..script_state.data_position import Position
from ..script_state.frames import CodeKey
from ..script_state.object_graph import Kind, Traits
from ..script_state.object_restore import Restoration
from ..script_state.refusal import CannotTake
from . import dataset_position, random_state, seams
from .dataset_position import COMPARED, Made
from .loop_kinds import TensorFlowKinds
from .value_store import SavedValues, ValueStore

DRAWN = "drawn"
DRAWN_WITH_A_SEED = (
    "tf.random with a seed of its own counts inside TensorFlow, where it cannot be read; a tf.random.Generator could be"
)


class TensorFlowLoops:
    name = "tensorflow"

    def __init__(
        self, tf: Any, iterate: Callable[[Any], Any], pull: Callable[[Any], Any], check_functions: Callable[[], None]
    ) -> None:
        self.tf = tf
        self._iterate, self._pull = iterate, pull  # TensorFlow's own
        self.followed: Tuple[type, ...] = (tf.data.Dataset, seams.iterator_class())
        self.hidden = ""  # state that TensorFlow keeps where it cannot be read
        self.drawn = 0  # times that an operation with a seed of its own was run
        self.recording = 0  # tapes
        self._python_data = False
        self._check_functions = check_functions

    def check(self, positions: List[Position]) -> None:
        if self.hidden:
            raise CannotTake(self.hidden)
        self._check_functions()
        if self.recording > 0:
            raise CannotTake("a GradientTape records")
        if self.tf.distribute.has_strategy():
            raise CannotTake("a distribution strategy, which is not followed yet")
        for position in positions:
            if not position.ended and position.iterator() is not None:
                dataset_position.check(position.source(), position.made)
                if position.first is not None and position.first[DRAWN] != self.drawn:
                    raise CannotTake(DRAWN_WITH_A_SEED)

    def random_state(self) -> Dict[str, Any]:
        state, seeds = random_state.capture(), _global_seeds()
        state["keras"] = None if seeds is None else seeds.state.numpy()
        return state

    def data_random_state(self) -> Dict[str, Any]:
        return {**random_state.of_data(), DRAWN: self.drawn}

    def put_random_state(self, state: Dict[str, Any]) -> None:
        """Where the data comes from Python, reading it again has moved Python's random state to where it was, or a thread
        moves it still."""
        if state.get("keras") is not None:
            (_global_seeds() or keras_seams.make_global_seeds()).state.assign(state["keras"])
        now = random_state.of_data()
        kept = {name: now[name] for name in ("python", "numpy") if name in now} if self._python_data else {}
        random_state.restore({**state, **kept})

    def put_data_random_state(self, state: Dict[str, Any]) -> None:
        random_state.restore(state)

    def same_data(self, one: Made, other: Made) -> bool:
        return one.like == other.like

    def keeps_data(self, _source: Any) -> bool:
        return False  # what it is made of lies in TensorFlow's own memory

    def kept_data(self) -> List[Any]:
        return []

    def keep_data(self, kept: Any) -> None:
        pass

    def data_of(self, _source: Any) -> Any:
        return None

    def about_to_make(self, source: Any) -> Made:
        made = dataset_position.made_of(source)
        dataset_position.count_one(source)
        return made

    def position(self, number: int, source: Any, made: Made) -> Position:
        return Position(number, source, made, COMPARED, dataset_position.sample)

    def follow(self, iterator: Any, position: Position) -> None:
        pass

    def bring_forward(self, iterator: Any, source: Any, record: Dict[str, Any]) -> None:
        moved = dataset_position.bring_forward(iterator, source, record, self._iterate, self._pull)
        self._python_data = self._python_data or moved

    def begun(self) -> List[Any]:
        return []

    def begin(self, source: Any) -> None:
        pass

    def taking(self) -> TensorFlowTaking:
        return TensorFlowTaking(self.tf)

    def putting(self, path: str, description: Any) -> TensorFlowPutting:
        return TensorFlowPutting(self.tf, path, description)

    def is_one_ahead(self, _code: CodeKey) -> bool:
        return False

    def before_update(self, _optimizer: Any) -> float:
        return 0.0

    def prepare_memory(self, size: int) -> None:
        """Nothing is copied before training writes to it."""

    def let_go(self) -> None:
        pass  # nothing is kept between two checkpoints


class TensorFlowTaking:
    needs_next_step = False

    def __init__(self, tf: Any) -> None:
        self._store = ValueStore()
        self._kinds = TensorFlowKinds(tf, store=self._store)

    @property
    def bytes(self) -> int:
        return self._store.bytes

    def kinds(self) -> List[Kind]:
        keras = KerasKinds(self._store.add_variable, _no_value).kinds() if _has_keras() else []
        return [*keras, *self._kinds.kinds()]

    def traits(self) -> Traits:
        return self._kinds.traits()

    def hold(self, has_room: Callable[[int], bool], _may_wait: bool) -> bool:
        """What training writes to while this is being written is copied then."""
        return has_room(self._store.bytes)

    def settle(self) -> None:
        pass

    def description(self) -> Any:
        return self._store.entries

    def write(self, place: str) -> None:
        self._store.write(place)


class TensorFlowPutting:
    def __init__(self, tf: Any, path: str, description: Any) -> None:
        saved = SavedValues(tf, path, description)
        self._kinds = TensorFlowKinds(tf, saved=saved)
        self._put = saved.put
        self._keras: Optional[KerasKinds] = None

    def kinds(self) -> List[Kind]:
        self._keras = KerasKinds(_no_number, self._put) if _has_keras() else None
        return [*(self._keras.kinds() if self._keras is not None else ()), *self._kinds.kinds()]

    def traits(self) -> Traits:
        return self._kinds.traits()

    def bound(self, restoration: Restoration) -> None:
        if self._keras is not None:
            self._keras.bound(restoration)

    def finish(self, restoration: Restoration) -> None:
        pass


def _has_keras() -> bool:
    return "keras" in sys.modules and keras_seams.is_keras_3()


def _global_seeds() -> Any:
    return keras_seams.global_seeds() if _has_keras() else None


def _no_value(_number: int, _variable: Any) -> None:
    raise AssertionError("a state that is taken puts nothing back")


def _no_number(_variable: Any) -> int:
    raise AssertionError("a state that is put back takes nothing")
