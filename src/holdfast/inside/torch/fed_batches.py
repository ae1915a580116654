"""What a DataLoader hands out on its way to the model: labels that the model has no output for, and parts whose form changes.

Which part of a batch the labels are is learned from the loss of the first steps: what it was given is that very tensor, not changed in between.
Then it costs 6 µs a batch (80 labels), in the first pass through the data alone; once something was found, in all.
"""

from __future__ import annotations

import sys
import weakref
import zlib
from collections import deque
from dataclasses import replace
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from ..fed_batches.events import TELLINGS, tell_form, tell_labels, tell_left_out
from ..fed_batches.forms import Forms
from ..fed_batches.imputing import fill_of, filled
from ..fed_batches.imputing import in_words as imputed_in_words
from ..fed_batches.labels import BadLabels, LabelRange
from ..never_raise import guarded, outcome
from ..numerics.events import IMPUTED, tell_went_on
from ..telemetry import Recorder, now
from . import seams
from .numerics.hooks import Looks
from .numerics.source_rows import places_of
from .step import Call, Step
from .tensor_nests import is_by_row, named_leaves, opened, refilled

FORM_EVERY, FORM_AT_FIRST = 16, 32  # batches whose form is looked at
DATA_SETS, PARTS = 16, 16  # that are known by their arrays; arrays in a tuple that one holds
SMALL, SHARE = 1 << 15, 0.003  # labels that are looked at in any batch; of the time, where there are more


def looking_at_batches(recorder: Recorder, torch: Any, looks: Looks) -> FedBatches:
    fed = FedBatches(recorder, torch, looks)
    fed.listen()
    return fed


class Fed:
    """Of one data set."""

    __slots__ = ("at", "batches", "fills", "forms", "found", "labels", "looks", "next_at", "sure", "told")

    def __init__(self) -> None:
        self.forms = Forms()
        self.batches = 0
        self.labels: Optional[LabelRange] = None
        self.at: Tuple[Any, ...] = ()  # keys that lead to the labels in a batch
        self.sure = False
        self.looks = True  # the first pass, or something was found
        self.found = False
        self.told = 0
        self.next_at = 0.0
        self.fills: Dict[Tuple[Any, ...], Any] = {}  # by keys: what stands for values that are not finite


class FedBatches:
    def __init__(self, recorder: Recorder, torch: Any, looks: Looks) -> None:
        self._recorder, self._torch, self._looks = recorder, torch, looks
        self._known: Any = weakref.WeakKeyDictionary()  # by data set
        self._of_arrays: Deque[Tuple[Any, List[Any], Fed]] = deque(maxlen=DATA_SETS)  # kind, references to its arrays
        self._latest: Optional[Tuple[Fed, List[Any]]] = None  # while it is not known what the labels are
        self._whole = (torch.int64, torch.int32, torch.uint8, torch.int16, torch.int8)
        self._floating = (torch.float32, torch.float64, torch.float16)
        self._floats: Optional[Tuple[Fed, List[Any]]] = None  # of the latest batch, once there was bad data
        self._remembers_floats = False
        self.came = guarded(self._came)

    def listen(self) -> None:
        self._looks.sampling.labels_found = guarded(self.learn)
        self._looks.sampling.labels_wanted = lambda: self._latest is not None
        self._looks.going_on.data_is_bad, self._looks.going_on.impute = guarded(self.data_is_bad), guarded(self.impute)

    def aspect(self, step: Step) -> Step:
        return replace(step, iterate=self._iterate(step.iterate), next_batch=self._next_batch(step.next_batch))

    def _iterate(self, inner: Call) -> Call:
        begins = guarded(self._begins)

        def __iter__(loader: Any) -> Any:
            iterator = inner(loader)
            begins(loader, iterator)
            return iterator

        return __iter__

    def _begins(self, loader: Any, iterator: Any) -> None:
        iteration = getattr(iterator, "_holdfast", None)
        data = getattr(loader, "dataset", None)
        if iteration is None or type(data).__hash__ is None or not hasattr(type(data), "__weakref__"):
            return
        iteration.fed = self._known.get(data)
        if iteration.fed is None:
            iteration.fed = self._known[data] = self._made_anew(data, getattr(loader, "collate_fn", None))

    def _made_anew(self, data: Any, collate: Any) -> Fed:
        """Scripts make their data set anew in each epoch, of the same arrays: what is known of it stays."""
        arrays = outcome(arrays_of, data, self._torch)[0] or []
        for kind, known, fed in self._of_arrays:
            same = kind == (type(data), collate) and len(known) == len(arrays)
            if same and all(reference() is array for reference, array in zip(known, arrays)):
                return fed
        fed = Fed()
        if arrays:
            self._of_arrays.append(((type(data), collate), [weakref.ref(array) for array in arrays], fed))
        return fed

    def _next_batch(self, inner: Call) -> Call:
        came, over = self.came, guarded(self.pass_is_over)

        def __next__(iterator: Any) -> Any:
            iteration: Any = getattr(iterator, "_holdfast", None)
            if iteration is None or iteration.fed is None or not iteration.fed.looks:
                return inner(iterator)
            try:
                batch = inner(iterator)
            except StopIteration:
                over(iteration)
                raise
            instead = came(iteration, batch)
            return batch if instead is None else instead

        return __next__

    def pass_is_over(self, iteration: Any) -> None:
        fed = iteration.fed
        if fed is not None and iteration.trained and not fed.found:
            fed.looks = False
        self._latest = None

    def _came(self, iteration: Any, batch: Any) -> Any:
        """A batch to be handed out instead of this one; None where it is as it should be."""
        fed = iteration.fed
        fed.batches += 1
        if iteration.evaluates:
            return None
        if fed.batches <= FORM_AT_FIRST or not fed.batches % FORM_EVERY:
            self._look_at_form(fed, batch)
        if fed.fills:
            batch = changed = self._filled(fed, batch)
        else:
            changed = None
        if self._remembers_floats:
            self._floats = (fed, _tensors(self._torch, batch, lambda leaf: leaf.dtype in self._floating))
        if fed.labels is None:
            self._remember(fed, batch)
            return changed
        instead = self._look_at_labels(fed, fed.labels, batch)
        return changed if instead is None else instead

    def _look_at_form(self, fed: Fed, batch: Any) -> None:
        parts = [
            (name, leaf) for name, leaf in named_leaves(batch) if hasattr(leaf, "dtype") and hasattr(leaf, "shape")
        ]
        for changed in fed.forms.changed(parts):
            tell_form(self._recorder, changed)

    # -- which part the labels are

    def _remember(self, fed: Fed, batch: Any) -> None:
        if not self._looks.sampling.due:  # nobody will ask
            self._latest = None
            return
        found = _tensors(self._torch, batch, lambda leaf: leaf.dtype in self._whole)
        self._latest = (fed, [(keys, leaf, seams.version_of(leaf)) for keys, leaf in found])

    def learn(self, target: Any, classes: int, ignored: Optional[int]) -> None:
        """What a loss was given, in a step that is looked at."""
        if self._latest is None:
            return
        fed, leaves = self._latest
        alike = [each for each in leaves if each[1].numel() == target.numel() and each[1].dim()]
        same = [
            each for each in alike if each[1].data_ptr() == target.data_ptr() and seams.version_of(each[1]) == each[2]
        ]
        if not same and not (target.is_cuda and len(alike) == 1):
            return
        keys, leaf, _ = (same or alike)[0]
        name = ".".join(str(key) for key in keys)
        fed.at, fed.sure = keys, bool(same)
        fed.labels = LabelRange(name, classes, ignored)
        fed.labels.find(leaf.numpy())  # it counts among those that were seen
        self._latest = None

    # -- values that are not finite

    def data_is_bad(self) -> None:
        """A batch with values that are not finite was found in training."""
        self._remembers_floats = True
        for fed in self._known.values():
            fed.looks = fed.found = True

    def impute(self, name: str, value: Any, step: int) -> bool:
        """From the next batch on. False where this tensor is no part of a loader's batch as it was handed out."""
        if self._floats is None or value is None:
            return False
        fed, leaves = self._floats
        same = [keys for keys, leaf in leaves if leaf.data_ptr() == value.data_ptr() and leaf.shape == value.shape]
        if not same or same[0] in fed.fills:
            return False
        fed.fills[same[0]] = fill_of(value.detach().numpy())
        tell_went_on(self._recorder, step, IMPUTED, imputed_in_words(name, step + 1), 0, 1)
        return True

    def _filled(self, fed: Fed, batch: Any) -> Any:
        for keys, fill in fed.fills.items():
            leaf = _at(batch, keys)
            array = filled(leaf.detach().numpy(), fill) if leaf is not None else None
            if array is not None:
                batch = _changed(batch, keys, self._torch.from_numpy(array))
        return batch

    # -- labels

    def _look_at_labels(self, fed: Fed, labels: LabelRange, batch: Any) -> Any:
        value = _at(batch, fed.at)
        if not isinstance(value, self._torch.Tensor) or value.device.type != "cpu" or not value.dim():
            return None
        array = value.numpy()
        rows = labels.find(array) if array.size <= SMALL or fed.found else self._find_at_times(fed, labels, array)
        if not rows:
            return None
        fed.found = True
        bad = labels.told(array, rows)
        fed.told += 1
        if fed.told <= TELLINGS:
            self._add_places(bad, value)
            tell_labels(self._recorder, bad, fed.sure)
        if not fed.sure or not self._looks.going_on.acts() or not self._is_by_rows(batch, len(array)):
            return None
        if not labels.may_leave_out(len(array), [_content(self._torch, batch, row) for row in rows]):
            return None
        tell_left_out(self._recorder, bad, labels.times)
        return self._without(batch, rows, len(array))

    def _find_at_times(self, fed: Fed, labels: LabelRange, array: Any) -> List[int]:
        """A label for each pixel: as often as it costs little."""
        began = now()
        if began < fed.next_at:
            return []
        rows = labels.find(array)
        fed.next_at = began + (now() - began) / SHARE
        return rows

    def _add_places(self, bad: BadLabels, value: Any) -> None:
        for data, fed in list(self._known.items()):
            if fed.labels is not None and fed.labels.name == bad["name"]:
                found = places_of(self._torch, data, value, bad["rows"])
                if found:
                    bad["indices"] = found
                    return

    def _is_by_rows(self, batch: Any, rows: int) -> bool:
        """All that is in it has one entry for each row."""
        parts = opened(batch)
        if parts is None or not parts:
            return False
        return all(is_by_row(part, rows, self._torch) for _, part in parts)

    def _without(self, batch: Any, rows: List[int], count: int) -> Any:
        torch, bad = self._torch, set(rows)
        kept = [row for row in range(count) if row not in bad]

        def chosen(part: Any) -> Any:
            if isinstance(part, torch.Tensor):
                return part[kept]
            if isinstance(part, (list, tuple)):
                return type(part)(part[row] for row in kept)
            return part[kept]

        parts = [chosen(part) for _, part in opened(batch) or ()]
        return refilled(batch, iter(parts))


def arrays_of(data: Any, torch: Any, depth: int = 3) -> List[Any]:
    """The arrays that a data set holds, itself or in those it is made of."""
    found: List[Any] = []
    for value in vars(data).values():
        for part in value if isinstance(value, (list, tuple)) and len(value) <= PARTS else (value,):
            if isinstance(part, torch.Tensor) or hasattr(part, "__array_interface__"):
                found.append(part)
            elif isinstance(part, torch.utils.data.Dataset) and depth:
                found.extend(arrays_of(part, torch, depth - 1))
    return found


def _tensors(torch: Any, batch: Any, is_wanted: Callable[[Any], bool]) -> List[Tuple[Tuple[Any, ...], Any]]:
    """Those on the CPU, each with the keys that lead to it."""
    found: List[Tuple[Tuple[Any, ...], Any]] = []

    def gather(value: Any, keys: Tuple[Any, ...]) -> None:
        if isinstance(value, torch.Tensor):
            if value.device.type == "cpu" and is_wanted(value):
                found.append((keys, value))
        elif isinstance(value, (list, tuple, dict)):
            for key, part in opened(value) or ():
                gather(part, (*keys, key))

    gather(batch, ())
    return found


def _at(batch: Any, keys: Tuple[Any, ...]) -> Any:
    """None in a batch that is built otherwise."""
    value = batch
    try:
        for key in keys:
            value = value[key]
    except (KeyError, IndexError, TypeError):
        return None
    return value


def _changed(value: Any, keys: Tuple[Any, ...], leaf: Any) -> Any:
    """The batch with another leaf there."""
    if not keys:
        return leaf
    parts = [_changed(part, keys[1:], leaf) if key == keys[0] else part for key, part in opened(value) or ()]
    return refilled(value, iter(parts))


def _content(torch: Any, batch: Any, row: int) -> int:
    """A number that this row is known by when it comes again."""
    mark = 0
    numpy: Any = sys.modules["numpy"]
    for _, part in opened(batch) or ():
        if isinstance(part, torch.Tensor) and part.device.type == "cpu":
            mark ^= zlib.crc32(numpy.ascontiguousarray(part[row].detach().numpy()).tobytes())
    return mark
