"""What a framework's part does for checkpoints of loops: its tensors, its random numbers, its iterators over data."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Protocol, Tuple

from .data_position import Position
from .frames import CodeKey
from .object_graph import Kind, Traits
from .object_restore import Restoration


class Taking(Protocol):
    """One state that is being taken."""

    needs_next_step: bool  # what belongs to it is known only when the next step begins

    @property
    def bytes(self) -> int: ...
    def kinds(self) -> List[Kind]: ...
    def traits(self) -> Traits: ...
    def hold(self, has_room: Callable[[int], bool], may_wait: bool) -> bool:
        """Nothing that training does from here on may change it. False: training waits until it is written. `may_wait`:
        NotPrepared is raised where much memory would have to be touched first."""
        ...

    def settle(self) -> None:
        """The next step begins. Raises CannotTake."""
        ...

    def description(self) -> Any:
        """What `putting` needs to read it again."""
        ...

    def write(self, place: str) -> None: ...


class Putting(Protocol):
    """One state that is put back."""

    def kinds(self) -> List[Kind]: ...
    def traits(self) -> Traits: ...
    def bound(self, restoration: Restoration) -> None:
        """Everything this process has at the saved names is bound. Builds what is built late; raises CannotPutBack where
        this process has built something else."""
        ...

    def finish(self, restoration: Restoration) -> None: ...


class LoopFramework(Protocol):
    name: str  # in manifests

    @property
    def followed(self) -> Tuple[type, ...]:
        """Classes of loaders and their iterators."""
        ...

    def check(self, positions: List[Position]) -> None:
        """Raises CannotTake where nothing can be taken exactly at present."""
        ...

    def random_state(self) -> Dict[str, Any]: ...
    def put_random_state(self, state: Dict[str, Any]) -> None: ...
    def data_random_state(self) -> Dict[str, Any]:
        """What the order of the data can depend on."""
        ...

    def put_data_random_state(self, state: Dict[str, Any]) -> None: ...
    def same_data(self, one: Any, other: Any) -> bool:
        """Whether two iterators, by what `about_to_make` told of them, go over the same; the order does not count."""
        ...

    def keeps_data(self, source: Any) -> bool:
        """A loop goes over other data than in its turn before. True where that is saved with the state from now on."""
        ...

    def kept_data(self) -> List[Any]:
        """What is saved so."""
        ...

    def keep_data(self, kept: Any) -> None:
        """In a process that has gone on."""
        ...

    def data_of(self, source: Any) -> Any:
        """What may be kept of this source; None where nothing is."""
        ...

    def about_to_make(self, source: Any) -> Any:
        """What the order of a new iterator depends on."""
        ...

    def position(self, number: int, source: Any, made: Any) -> Position: ...
    def follow(self, iterator: Any, position: Position) -> None: ...
    def bring_forward(self, iterator: Any, source: Any, record: Dict[str, Any]) -> None: ...
    def begun(self) -> List[Any]:
        """Sources that keep their first iterator for all epochs. Making it draws random numbers, once."""
        ...

    def begin(self, source: Any) -> None:
        """Such a source, where this process has not."""
        ...

    def taking(self) -> Taking: ...
    def putting(self, path: str, description: Any) -> Putting: ...
    def is_one_ahead(self, code: CodeKey) -> bool:
        """Whether this function is a loader that asks for its first batch at another place than for the next ones."""
        ...

    def before_update(self, optimizer: Any) -> float:
        """An optimizer is about to write its state. Returns the seconds that this waited for what is being copied."""
        ...

    def prepare_memory(self, size: int) -> None:
        """For copies of so many bytes."""
        ...

    def let_go(self) -> None:
        """Of memory that is kept for the next checkpoint."""
        ...


class EpochLoop(Protocol):
    """What is to be known of a loop that a trainer runs."""

    title: str

    @property
    def batch(self) -> int: ...
    def fed_by(self, positions: List[Position]) -> List[Position]: ...
    def check(self) -> None: ...  # raises CannotTake
