"""A module's call in pieces of rows: forward keeps nothing but its outputs, backward runs each piece again.

One autograd function stands for the whole call. Its outputs are those of all rows, so that the loss, the optimizer and
everything else of the script see the batch as it is; what backward needs is computed again, piece by piece.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

from ..out_of_memory import forget, give_back, is_out_of_memory
from ..piece_sizes import bounds
from ..rescue_engine import CannotSplit
from . import among_ranks, seams
from .batch_function import AGAIN, PIECE, BatchFunction
from .loss_shares import Weighing, share_of
from .outermost_call import left_alone
from .piece_state import autocasts, casting, kept_by, random_state, refuse_what_it_keeps, set_random_state, uncached
from .split_effects import Effects
from .step_undo import StepUndo, additions, aside
from .tensor_nests import cut, form_of, mapped, tensors_of, without_caches


class Segment(NamedTuple):
    begin: int
    end: int
    random: Optional[List[Any]] = None  # as it was when the piece was run; None: as it comes
    skip: Tuple[int, ...] = ()  # numbers of parameters whose gradient has these rows in it already


class Call:
    """One call of a module, to be run in pieces. `shrink(rows)` says how many rows to go on with, or raises."""

    least = 1  # rows of a piece

    def __init__(self, function: BatchFunction, args: Any, kwargs: Any, rows: int, traces: StepUndo) -> None:
        self.torch: Any = sys.modules["torch"]
        self.function, self.module, self.args, self.kwargs = function, function.model, args, kwargs
        self.rows, self.traces = rows, traces
        self.parameters = [p for p in traces.parameters if p.requires_grad]
        self.inputs = [t for t in tensors_of((args, kwargs), self.torch) if t.requires_grad]
        self._versions = self.versions()
        self.casting = autocasts(self.torch)
        self.segments: List[Segment] = []
        self.ways: List[Optional[Weighing]] = []  # of each output: how a number is put together; unused for rows
        self.known: List[str] = []  # the names of the ways that hold for the first of its numbers
        self.differentiable: List[bool] = []
        self.outputs: List[Any] = []
        self._template: Any = None
        self.left_out = False  # a cache of the module's was
        self.disclosed: List[str] = []  # what is not the same, beside what all calls have in common
        self.totals = False  # gradients given to outputs have in them what comes by way of other outputs
        self.draws = False  # random numbers, when it was run again
        self.shrink: Callable[[int], int] = _cannot_shrink
        self.refuse: Callable[[str, BaseException], None] = _unsaid

    def versions(self) -> List[int]:
        return [
            seams.version_of(t) for t in (*tensors_of((self.args, self.kwargs), self.torch), *self.traces.parameters)
        ]

    def run(self, why: str, begin: int, end: int, leaves: Optional[dict[int, Any]] = None) -> Any:
        """On these rows. With `leaves`, inputs that want a gradient are leaves, found there by identity."""

        def change(tensor: Any, part: Any) -> Any:
            if leaves is None or not tensor.requires_grad:
                return part
            leaf = leaves.get(id(tensor))
            if leaf is None:
                leaf = leaves[id(tensor)] = part.detach().requires_grad_()
            return leaf

        args = cut(self.args, begin, end, self.torch, self.rows, change)
        kwargs = cut(self.kwargs, begin, end, self.torch, self.rows, change)
        with left_alone():
            found, had_cache = without_caches(self.function.part(why, args, kwargs))
        self.left_out = self.left_out or had_cache
        return found

    # -- forward

    def forward(self, sizes: List[Tuple[int, int]], effects: Effects) -> Any:
        """The call's result, in one graph of its own. `sizes`: where to cut."""
        torch, joined = self.torch, None
        todo = [Segment(begin, end) for begin, end in sizes]
        effects.begin(self.rows)
        with self.without_graph(), uncached(torch):
            while todo:
                segment = todo.pop(0)
                others = self.traces.other_buffers() if not effects.looked else {}
                kept = self._kept() if len(self.segments) == 1 and self.function.is_module else None
                self.traces.note()
                random = random_state(torch)
                failure, found = self._try(segment.begin, segment.end)
                if failure is not None:
                    self.traces.undo()
                    todo = [Segment(*cut) for cut in self._cut_smaller(segment, self.rows, failure)]
                    continue
                effects.piece(segment.end - segment.begin, others)
                if kept is not None:
                    refuse_what_it_keeps(kept, self._kept())
                self.segments.append(segment._replace(random=random))
                joined = joined or Joined(torch, self.rows, self.ways)
                joined.add(found, segment)
                found = None
        effects.end()
        if self.versions() != self._versions:
            raise CannotSplit("it changes its inputs in place")
        assert joined is not None
        self.outputs, self._template = joined.whole(), joined.template
        return self._rebuilt(function_of(torch).apply(self, *self.inputs, *self.parameters))

    def without_graph(self) -> Any:
        """A loss may have gradients within, of a penalty say: there each piece has a graph, which goes with it."""
        return self.torch.no_grad() if self.function.is_module else contextlib.nullcontext()

    def _try(self, begin: int, end: int) -> Tuple[Optional[BaseException], Any]:
        try:
            return None, self.run(PIECE, begin, end)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            return error, None

    def _cut_smaller(self, failed: Segment, end: int, failure: BaseException) -> List[Tuple[int, int]]:
        """From where the failed piece began up to `end`."""
        forget(failure)
        give_back()
        size = self.shrink(failed.end - failed.begin)
        rows = end - failed.begin
        pieces = bounds(rows, min(-(-rows // size), rows // self.least))
        if pieces[0][1] >= failed.end - failed.begin:
            raise CannotSplit(f"{failed.end - failed.begin} rows do not fit")
        return [(failed.begin + one, failed.begin + other) for one, other in pieces]

    def _rebuilt(self, tensors: Tuple[Any, ...]) -> Any:
        left = iter(tensors)
        torch = self.torch
        return mapped(self._template, lambda leaf: next(left) if isinstance(leaf, torch.Tensor) else leaf)

    # -- backward

    def backward(self, gradients: Tuple[Any, ...]) -> List[Any]:
        """Of each input that wants one, then of each parameter; None where there is none."""
        torch = self.torch
        if torch.is_grad_enabled():
            raise RuntimeError("holdfast: a batch that is trained in pieces has no gradient of its gradient")
        if self.versions() != self._versions:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                "an input or a parameter of a module whose call was run in pieces (holdfast)"
            )
        with self.traces.unchanged(), aside(self.parameters), torch.enable_grad(), casting(torch, self.casting):
            of_inputs = self._again(gradients)
            return [*of_inputs, *(parameter.grad for parameter in self.parameters)]

    def _again(self, gradients: Tuple[Any, ...]) -> List[Any]:
        found: List[Any] = [None] * len(self.inputs)
        positions = [0] * len(gradients)
        todo = list(self.segments)
        kept = self._kept() if self.totals else None  # else it was looked at in the forward pass
        while todo:
            segment = todo.pop(0)
            if segment.random is not None:
                set_random_state(self.torch, segment.random)
            before = [mark(parameter) for parameter in self.parameters]
            leaves: dict[int, Any] = {}
            reached = list(positions)
            drawn = random_state(self.torch)
            failure = self._piece(segment, gradients, reached, leaves)
            self.draws = self.draws or any(bool((a != b).any()) for a, b in zip(drawn, random_state(self.torch)))
            if failure is not None:
                leaves.clear()
                done = [n for n, parameter in enumerate(self.parameters) if mark(parameter) != before[n]]
                skip = tuple(sorted({*segment.skip, *done}))
                try:
                    cuts = self._cut_smaller(segment, segment.end, failure)
                except CannotSplit as reason:
                    self.refuse(str(reason), failure)
                    raise failure from None
                smaller = [Segment(begin, end, None, skip) for begin, end in cuts]
                todo[:0] = [smaller[0]._replace(random=drawn), *smaller[1:]]
                continue
            if kept is not None:
                refuse_what_it_keeps(kept, self._kept())
            kept, positions = None, reached
            self._gather(found, leaves, segment)
        return found

    def _kept(self) -> dict[str, Tuple[str, Any]]:
        buffers = {name: ("value", (id(one), version)) for name, (one, version) in self.traces.other_buffers().items()}
        return {**kept_by(self.module), **buffers} if self.function.is_module else buffers

    def _piece(
        self, segment: Segment, gradients: Tuple[Any, ...], positions: List[int], leaves: dict[int, Any]
    ) -> Optional[BaseException]:
        skipped = [self.parameters[number] for number in segment.skip]
        with aside(skipped), additions(skipped) as counts:
            try:
                outputs = tensors_of(self.run(AGAIN, segment.begin, segment.end, leaves), self.torch)
                pairs = self._with_gradients(outputs, gradients, positions, segment)
                if self.totals:
                    for output, part in pairs:
                        output.register_hook(_always(part))
                if pairs:
                    added = [p for n, p in enumerate(self.parameters) if n not in segment.skip]
                    outputs, parts = [one for one, _ in pairs], [other for _, other in pairs]
                    among_ranks.backward(self.torch, outputs, parts, (*added, *leaves.values()))
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                return error
        if any(count > 1 for count in counts.values()):
            raise CannotSplit("a gradient that was there before may be half changed")
        return None

    def _with_gradients(
        self, outputs: List[Any], gradients: Tuple[Any, ...], positions: List[int], segment: Segment
    ) -> List[Tuple[Any, Any]]:
        pairs = []
        for number, (output, gradient) in enumerate(zip(outputs, gradients)):
            if output.dim():
                begin = positions[number]
                positions[number] = begin + output.shape[0]
                part = None if gradient is None else gradient[begin : positions[number]]
            else:
                share = share_of(self.ways[number], segment.begin, segment.end)
                part = None if gradient is None or not share else gradient.reshape(()) * share
            if part is not None and output.requires_grad:
                pairs.append((output, part.to(output.dtype)))
        return pairs

    def _gather(self, found: List[Any], leaves: dict[int, Any], segment: Segment) -> None:
        for number, tensor in enumerate(self.inputs):
            leaf = leaves.get(id(tensor))
            if leaf is None or leaf.grad is None:
                continue
            if leaf.shape == tensor.shape and segment.end - segment.begin < self.rows:  # went along whole
                found[number] = leaf.grad if found[number] is None else found[number] + leaf.grad
                continue
            if found[number] is None:
                found[number] = self.torch.zeros_like(tensor, requires_grad=False)
            found[number][segment.begin : segment.end] = leaf.grad


def _always(gradient: Any) -> Callable[[Any], Any]:
    return lambda _: gradient


def _unsaid(_reason: str, _error: BaseException) -> None:
    return None


def _cannot_shrink(rows: int) -> int:
    raise CannotSplit(f"{rows} rows do not fit")


NONE = (0, 0)  # the mark of no gradient


def mark(tensor: Any) -> Tuple[int, int]:
    """By which a change of its gradient is known."""
    gradient = tensor.grad
    return NONE if gradient is None else (id(gradient), seams.version_of(gradient))


class Joined:
    """Outputs of all pieces in one tensor each, filled as they come: never two of a kind."""

    def __init__(self, torch: Any, rows: int, ways: List[Optional[Weighing]]) -> None:
        self._torch, self._rows, self._ways = torch, rows, ways
        self._wholes: List[Any] = []
        self._filled: List[int] = []
        self.template: Any = None
        self._form: Any = None

    def add(self, found: Any, segment: Segment) -> None:
        torch = self._torch
        form, tensors = form_of(found, torch), tensors_of(found, torch)
        if self.template is None:
            self._form = form
            self.template = mapped(found, lambda leaf: leaf.new_empty(0) if isinstance(leaf, torch.Tensor) else leaf)
            self._wholes = [self._room(tensor, segment) for tensor in tensors]
            self._filled = [0] * len(tensors)
        if form != self._form:
            raise CannotSplit("what it returns differs from part to part")
        for number, tensor in enumerate(tensors):
            if not tensor.dim():
                share = share_of(self._ways[number], segment.begin, segment.end)
                if share:
                    self._wholes[number] += tensor.detach() * share
                continue
            begin = self._filled[number]
            end = self._filled[number] = begin + tensor.shape[0]
            if end > self._wholes[number].shape[0] or tensor.shape[1:] != self._wholes[number].shape[1:]:
                raise CannotSplit("the shape of what it returns is not by rows")
            self._wholes[number][begin:end] = tensor.detach()

    def _room(self, first: Any, segment: Segment) -> Any:
        torch = self._torch
        if not first.dim():
            return torch.zeros_like(first, requires_grad=False)
        total, odd = divmod(first.shape[0] * self._rows, segment.end - segment.begin)
        if odd:
            raise CannotSplit("the shape of what it returns is not by rows")
        layout = torch.channels_last if _is_channels_last(first, torch) else torch.contiguous_format
        return torch.empty((total, *first.shape[1:]), dtype=first.dtype, device=first.device, memory_format=layout)

    def whole(self) -> List[Any]:
        if any(t.dim() and t.shape[0] != filled for t, filled in zip(self._wholes, self._filled)):
            raise CannotSplit("the shape of what it returns is not by rows")
        return self._wholes


def _is_channels_last(tensor: Any, torch: Any) -> bool:
    return bool(
        tensor.dim() == 4 and not tensor.is_contiguous() and tensor.is_contiguous(memory_format=torch.channels_last)
    )


# -- one function of autograd's for all of a call

_made: List[Any] = []


def function_of(torch: Any) -> Any:
    if _made:
        return _made[0]

    class InPieces(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, call: Call, *_: Any) -> Tuple[Any, ...]:
            outputs, call.outputs = call.outputs, []
            ctx.call = call
            ctx.set_materialize_grads(False)
            ctx.mark_non_differentiable(*(t for t, wanted in zip(outputs, call.differentiable) if not wanted))
            return tuple(outputs)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Tuple[Any, ...]:
            with left_alone():
                return (None, *ctx.call.backward(gradients))

    _made.append(InPieces)
    return InPieces
