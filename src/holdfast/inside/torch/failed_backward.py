"""A backward pass that ran out of memory: the calls it was in are run again in pieces, and it goes on from there.

Of each outermost call its inputs are remembered as long as its graph lives, and the gradient that arrives at its
outputs. Autograd adds to each parameter once: what it has added is complete and stays; the rest comes from the pieces.
Where that is not all that the failed pass was to compute, the error goes on as it came.
"""

from __future__ import annotations

import weakref
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

from ..never_raise import guarded
from ..out_of_memory import forget, give_back, is_out_of_memory, tell_caught
from ..piece_sizes import bounds
from ..rescue_engine import CannotSplit
from . import among_ranks, autograd_graph
from .batch_function import BatchFunction
from .foresight import Saved
from .outermost_call import left_alone
from .piece_state import casting
from .recompute import Segment, mark
from .tensor_nests import tensors_of

MOST = 64  # calls that are remembered: those of a step

Mark = Tuple[int, int]


class Noted(NamedTuple):
    """Of a call that is about to be made whole."""

    args: Any  # in containers of our own: a loss may pop its labels
    kwargs: Any
    inputs: List[Any]  # tensors
    random: List[Any]
    versions: List[int]  # of its inputs and parameters
    number: int  # of the next node in autograd's graph
    autocasts: List[Tuple[str, bool, Any]]
    is_new: bool  # a size that did not go through often so far
    sent: Optional[int] = None  # collectives by this process so far
    watched: Optional[Saved] = None

    def casting(self, torch: Any) -> Any:
        return casting(torch, self.autocasts)


class Record:
    """One call that went through whole. Held by its outputs' hooks alone, and gone with the graph."""

    def __init__(self, known: Any, function: BatchFunction, noted: Noted, after: int) -> None:
        self.known, self.function, self.noted = known, function, noted
        self.range: autograd_graph.Range = (noted.number, after)
        self.gradients: Dict[int, Any] = {}  # of outputs, by their number: all there is, also by way of other outputs
        self.edges: Dict[Tuple[int, int], int] = {}  # in the graph -> number of the output
        self.ahead: Dict[int, Any] = {}  # gradients of outputs that were computed before the backward pass

    def has_arrived(self, edge: Tuple[int, int]) -> bool:
        return self.edges.get(edge) in self.gradients

    def arrives(self, number: int) -> Any:
        def hook(gradient: Any) -> None:
            if gradient is not None:
                self.gradients[number] = gradient

        return hook


class Backward:
    def __init__(self, rescue: Any) -> None:
        self._rescue = rescue
        self._torch = rescue.torch
        self.records: List[Any] = []  # weak

    # -- the usual path

    @guarded
    def follow(self, record: Record, found: Any) -> None:
        torch = self._torch
        inputs = record.noted.inputs
        for number, tensor in enumerate(tensors_of(found, torch)):
            node = tensor.grad_fn
            if (
                node is not None
                and not any(tensor is one for one in inputs)
                and autograd_graph.number_of(node) >= record.range[0]
            ):
                record.edges[autograd_graph.number_of(node), tensor.output_nr] = number
                tensor.register_hook(record.arrives(number))
        if len(self.records) >= MOST:
            self.records = [one for one in self.records if one() is not None][-MOST:]
        self.records.append(weakref.ref(record))

    def alive(self) -> List[Record]:
        return [record for one in self.records if (record := one()) is not None]

    def begins(self, root: Any = None) -> Optional[List[Tuple[Any, Mark]]]:
        """Gradients as they are before a backward pass; None where no call is remembered."""
        records = self.alive() if self.records else []
        if not records:
            self.records = []
            return None
        if root is not None and len(records) > 1 and any(record.noted.is_new for record in records):
            self._look_ahead(root, records)
        tensors: List[Any] = []
        seen: Set[int] = set()
        for record in records:
            record.gradients.clear()
            if id(record.known) not in seen:  # called twice, say
                seen.add(id(record.known))
                tensors += record.known.parameters()
            tensors += [one for one in record.noted.inputs if one.requires_grad and one.is_leaf]
        return [(tensor, mark(tensor)) for tensor in tensors]

    def ends(self) -> None:
        for record in self.alive():
            record.gradients.clear()
            record.ahead.clear()

    def _look_ahead(self, root: Any, records: List[Record]) -> None:
        """Of several calls beside each other one is gone through first. Should it fail, what was on its way to the others
        is lost: so it is computed before, from the loss to the outputs of the modules, where sizes are new."""
        torch = self._torch
        kind = getattr(torch.autograd.graph, "GradientEdge", None)
        found = autograd_graph.nodes_into([root.grad_fn], [record.range for record in records])
        reached = [record for record in records if any(edge in record.edges for edge in found)]
        if kind is None or len(reached) < 2 or autograd_graph.depend_on_each_other(reached):
            return
        edges = [edge for edge in found if any(edge in record.edges for record in reached)]
        try:
            with left_alone():
                gradients = torch.autograd.grad(
                    [root], [kind(*found[edge]) for edge in edges], retain_graph=True, allow_unused=True
                )
        except (MemoryError, RuntimeError, TypeError):  # then there is none, and the pass itself will tell
            return
        for edge, gradient in zip(edges, gradients):
            for record in reached:
                if edge in record.edges and gradient is not None:
                    record.ahead[record.edges[edge]] = gradient

    # -- after a failure

    def again(self, root: Any, marks: List[Tuple[Any, Mark]], failure: BaseException) -> None:
        """Does what the failed pass was to do; or CannotSplit."""
        roots: List[Any] = [root.grad_fn]
        error: Optional[BaseException] = failure
        while error is not None:
            forget(error)
            upstream = self._recomputed(roots, marks)
            if not upstream:
                return
            marks = self.begins() or marks
            roots = [tensor.grad_fn for tensor, _ in upstream]
            error = self._on(upstream)

    def _on(self, upstream: List[Tuple[Any, Any]]) -> Optional[BaseException]:
        try:
            with left_alone():
                self._torch.autograd.backward([one for one, _ in upstream], [other for _, other in upstream])
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            tell_caught(self._rescue.recorder, "train", 1, error)
            return error
        return None

    def _recomputed(self, roots: List[Any], marks: List[Tuple[Any, Mark]]) -> List[Tuple[Any, Any]]:
        """The tensors from which the backward pass goes on, with their gradients."""
        complete = {id(tensor) for tensor, before in marks if mark(tensor) != before}
        arrived = self._arrived()
        failed = min((r for r in arrived if not r.ahead or r.gradients is not r.ahead), key=lambda one: one.range)
        ranges = [record.range for record in arrived]
        others = [record.range for record in self.alive() if record not in arrived]
        known = {id(tensor) for tensor, _ in marks}
        autograd_graph.nothing_is_missing(roots, ranges, others, failed.range, known, complete)
        for edge in autograd_graph.nodes_into(roots, ranges):
            if not any(record.has_arrived(edge) for record in arrived):
                raise CannotSplit("memory ran out where another output of the same call was under way, too")
        wanted = {id(r): self._wanted(r, ranges, failed.range, complete) for r in arrived}
        size = failed.known.size(failed.noted.args, failed.noted.kwargs)
        if size is None:
            raise CannotSplit("its inputs do not share a first axis, or have one row")
        for record in arrived:
            if record.range <= failed.range:
                autograd_graph.release(roots, record.range)
        give_back()
        failed.known.shrunk(size, size[0])
        upstream: Dict[int, Tuple[Any, Any]] = {}
        for record in arrived:
            if record is failed or wanted[id(record)]:
                self._one(record, complete, wanted[id(record)], upstream)
        self.ends()
        return list(upstream.values())

    def _arrived(self) -> List[Record]:
        """Calls whose gradient is known, the last one first."""
        alive = self.alive()
        first = min((record.range for record in alive if record.gradients), default=None)
        if first is None:
            raise CannotSplit("memory ran out in backward, outside of any module's call")
        for record in alive:
            if not record.gradients and record.ahead and record.range < first:
                record.gradients = record.ahead
        return sorted((r for r in alive if r.gradients), key=lambda record: record.range, reverse=True)

    def _wanted(
        self, record: Record, ranges: List[autograd_graph.Range], failed: autograd_graph.Range, complete: Set[int]
    ) -> Set[int]:
        """What of a call's gradients is still to be had: parameters and inputs, by identity."""
        found = {id(p) for p in record.known.parameters() if p.requires_grad and id(p) not in complete}
        for tensor in record.noted.inputs:
            if not tensor.requires_grad or (tensor.is_leaf and id(tensor) in complete):
                continue
            if tensor.is_leaf or autograd_graph.leads_to(tensor, ranges, failed) == "open":
                found.add(id(tensor))
        return found

    def _one(self, record: Record, complete: Set[int], wanted: Set[int], upstream: Dict[int, Tuple[Any, Any]]) -> None:
        torch, known, args, kwargs = self._torch, record.known, record.noted.args, record.noted.kwargs
        size = known.size(args, kwargs)
        if size is None:
            raise CannotSplit("its inputs do not share a first axis, or have one row")
        with record.noted.casting(torch), torch.enable_grad(), left_alone():
            call = known.prepared(record.function, args, kwargs, size)
        if call.versions() != record.noted.versions:
            raise CannotSplit("its inputs or parameters were changed since")
        skip = tuple(n for n, parameter in enumerate(call.parameters) if id(parameter) not in wanted)
        call.totals = True
        cuts = bounds(size[0], known.pieces.count(*size))
        call.segments = [Segment(begin, end, None, skip) for begin, end in cuts]
        call.segments[0] = call.segments[0]._replace(random=record.noted.random)
        gradients = tuple(record.gradients.get(number) for number in range(len(call.differentiable)))
        with torch.no_grad(), left_alone():
            found = call.backward(gradients)
            for tensor, gradient in zip((*call.inputs, *call.parameters), found):
                if gradient is None or id(tensor) not in wanted:
                    continue
                if tensor.is_leaf:
                    among_ranks.add(torch, tensor, gradient)
                else:
                    had = upstream.get(id(tensor))
                    upstream[id(tensor)] = (tensor, gradient if had is None else had[1] + gradient)
        known.disclose(call, drawn_anew=call.draws)
