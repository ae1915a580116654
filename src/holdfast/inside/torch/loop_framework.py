"""PyTorch's part in checkpoints of loops: tensors and gradients, random numbers, loaders."""

from __future__ import annotations

import os
import weakref
from typing import Any, Callable, Dict, List, Optional, Set, Tuple, Union

from ..script_state.data_position import SOURCE, Position
from ..script_state.frames import CodeKey
from ..script_state.object_graph import Kind, Traits
from ..script_state.object_restore import Restoration
from ..script_state.refusal import CannotTake
from ..telemetry import now
from . import dataset_likeness, random_state, seams, worker_states
from .copied_memory import own_memory, touched
from .dataset_likeness import sample
from .loader_position import BATCHES, INDICES, Made, bring_forward, follow_indices, made_of, what_is_compared
from .shared_draws import SharedDraws
from .tensor_kinds import TorchKinds
from .tensor_store import FILE, KEPT_BYTES, Block, Saved, TensorStore, Uncopied

GRADIENTS = "gradients.bin"
DRAWS = "data set draws random numbers in this process"


class TorchLoops:
    name = "torch"

    def __init__(self, torch: Any, iterate: Callable[..., Any], following: Callable[..., Any]) -> None:
        self.torch = torch
        self._iterate, self._following = iterate, following  # PyTorch's own
        self.leave_short_cut: Callable[[], object] = lambda: None
        self.block: Optional[Block] = None  # of the last checkpoint
        self.copying: Optional[Block] = None  # until the next update
        self._optimizers: Any = weakref.WeakSet()  # that have made a step
        self._latest: Callable[[], Any] = lambda: None  # of them
        self._begun: Any = weakref.WeakSet()  # loaders whose workers persist
        self.ranks: Optional[Tuple[int, int]] = None  # which one this is, and how many save together
        self.followed: Tuple[type, ...] = (seams.loader_module().DataLoader, seams.loader_iterator_class())

    def check(self, positions: List[Position]) -> None:
        for one in positions:
            if one.draws is not None and one.draws.likely() and not one.ended:
                draws = "sampler draws random numbers for each batch" if one.checked == INDICES else DRAWS
                raise CannotTake(f"the {draws}, and so does what runs between its batches")
        under_way = {id(one.source()) for one in positions if not one.ended}
        for loader in self.begun():
            states = worker_states.of(loader)
            if states is not None and id(loader) not in under_way:
                states.check_not_drawing()
        distributed = self.torch.distributed
        if not distributed.is_available() or not distributed.is_initialized():
            return
        if (distributed.get_rank(), distributed.get_world_size()) != self.ranks:
            raise CannotTake("several processes train together, and nobody has told them their numbers")

    def random_state(self) -> Dict[str, Any]:
        return random_state.capture(self.torch)

    data_random_state = random_state

    def put_random_state(self, state: Dict[str, Any]) -> None:
        random_state.restore(self.torch, state)

    put_data_random_state = put_random_state

    def same_data(self, one: Made, other: Made) -> bool:
        return dataset_likeness.same_data(
            one.like, other.like
        )  # which rows of it a loader has is put back with its samplers

    def keeps_data(self, source: Any) -> bool:
        return dataset_likeness.keep(source.dataset)

    def kept_data(self) -> List[Any]:
        return dataset_likeness.kept()

    def keep_data(self, kept: Any) -> None:
        dataset_likeness.keep(kept)

    def data_of(self, source: Any) -> Any:
        return source.dataset

    def about_to_make(self, source: Any) -> Made:
        return made_of(self.torch, source)

    def position(self, number: int, source: Any, made: Made) -> Position:
        if source.persistent_workers:
            self._begun.add(source)
        position = Position(number, source, made, what_is_compared(source), sample)
        if position.checked == INDICES or (position.checked == BATCHES and source.num_workers == 0):
            position.draws = SharedDraws(lambda: random_state.capture_of_host(self.torch))
        position.workers = None if made.anew else worker_states.of(source)
        return position

    def follow(self, iterator: Any, position: Position) -> None:
        follow_indices(iterator, position)
        loader = position.source()
        if (
            loader is not None and not loader.persistent_workers
        ):  # which it keeps with its iterator: they would keep each other
            setattr(iterator, SOURCE, loader)

    def bring_forward(self, iterator: Any, source: Any, record: Dict[str, Any]) -> None:
        bring_forward(self.torch, iterator, source, record, self._iterate, self._following)

    def begun(self) -> List[Any]:
        return list(self._begun)

    def begin(self, source: Any) -> None:
        self._begun.add(source)
        if source.persistent_workers and seams.kept_iterator(source) is None:
            self._iterate(source)

    def taking(self) -> TorchTaking:
        self.leave_short_cut()  # where nobody would look at the gradients before the next backward pass adds to them
        return TorchTaking(self)

    def putting(self, path: str, description: Any) -> TorchPutting:
        return TorchPutting(self.torch, path, description)

    def is_one_ahead(self, code: CodeKey) -> bool:
        return seams.is_one_ahead(code)

    def before_update(self, optimizer: Any) -> float:
        if self._latest() is not optimizer:
            self._optimizers.add(optimizer)
            self._latest = weakref.ref(optimizer)
        if self.copying is None:
            return 0.0
        began, block, self.copying = now(), self.copying, None
        block.finish()
        return now() - began

    def states_of_optimizers(self) -> Set[int]:
        """By id: only an optimizer's step writes them, and it is told before."""
        states = [state for optimizer in self._optimizers for state in optimizer.state.values()]
        return {id(one) for state in states if isinstance(state, dict) for one in state.values()}

    def prepare_memory(self, size: int) -> None:
        self.block = Block(self.torch, [], 0, touched(own_memory(self.torch, size)))

    def let_go(self) -> None:
        self.block = self.copying = None


class TorchTaking:
    """All but the gradients, copied. Those are looked at when the next backward pass begins, or a step that uses them."""

    needs_next_step = True

    def __init__(self, loops: TorchLoops) -> None:
        self._loops = loops
        self._store = TensorStore(loops.torch, loops.states_of_optimizers())
        self._kinds = TorchKinds(loops.torch, store=self._store)
        self._kept: List[Tuple[int, int]] = []  # node and entry of each gradient
        self._block: Union[Block, Uncopied]
        self._gradients: Block

    def kinds(self) -> List[Kind]:
        return self._kinds.kinds()

    def traits(self) -> Traits:
        return self._kinds.traits()

    def hold(self, has_room: Callable[[int], bool], may_wait: bool) -> bool:
        if not has_room(self._store.total):
            self._loops.block, self._block = None, self._store.as_they_are()
            return False
        if self._loops.copying is not None:  # what was taken last was given up, and its memory is used again
            self._loops.copying.finish()
        copied = self._store.copied(self._loops.block, may_wait)
        self._loops.copying = self._block = copied
        self._loops.block = copied if copied.bytes <= KEPT_BYTES else None
        return True

    def settle(self) -> None:
        """Gradients that are still there: a script that clears them before its next backward pass does not need them."""
        torch = self._loops.torch
        kept = [(node, gradient) for node, parameter, gradient in self._store.gradients if parameter.grad is gradient]
        self._store.gradients = []
        if any(gradient.layout != torch.strided for _, gradient in kept):
            raise CannotTake("gradients that are not plain tensors are added up over batches")
        store = TensorStore(torch)
        self._kept = [(node, store.add(gradient)[0]) for node, gradient in kept]
        self._gradients = store.copied(None)

    @property
    def bytes(self) -> int:
        return self._block.bytes + self._gradients.bytes

    def description(self) -> Any:
        blocks = self._blocks()
        return {"gradients": self._kept, **{name: (block.entries, block.bytes) for name, block in blocks.items()}}

    def write(self, place: str) -> None:
        for name, block in self._blocks().items():
            block.write(os.path.join(place, name))

    def _blocks(self) -> Dict[str, Union[Block, Uncopied]]:
        return {FILE: self._block, GRADIENTS: self._gradients}


class TorchPutting:
    def __init__(self, torch: Any, path: str, description: Any) -> None:
        self._of_gradients: List[Tuple[int, int]] = description["gradients"]
        tensors, self._gradients = (
            Saved(torch, os.path.join(path, name), *description[name]) for name in (FILE, GRADIENTS)
        )
        self._kinds = TorchKinds(torch, saved=tensors)

    def kinds(self) -> List[Kind]:
        return self._kinds.kinds()

    def traits(self) -> Traits:
        return self._kinds.traits()

    def bound(self, restoration: Restoration) -> None:
        self._kinds.check_layers(restoration)

    def finish(self, restoration: Restoration) -> None:
        for node, entry in self._of_gradients:
            parameter = restoration.object_of(node)
            parameter.grad = self._gradients.elements(entry).to(parameter.device, copy=True)
