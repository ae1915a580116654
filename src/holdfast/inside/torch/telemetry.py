"""What a PyTorch step tells: its number, epoch, batch, waiting, computing, and a few values read late.

A step is a round of updates: it begins when an optimizer updates that has already done so in the current round, or
when a batch has come since the last update. So a GAN's two optimizers make one step, a critic's five updates five,
gradient accumulation one per update, and an update that AMP skipped none. An update inside another one's `step` (SAM,
wrappers) is part of it. The first update of a further optimizer without a batch of its own joins the round at hand.

Not seen: an `optimizer.step` under torch.compile (the compiler leaves nothing of the hooks; a whole step: `compiled_steps.py`), replays of
a CUDA graph, optimizers that are no torch.optim.Optimizer. The loss is what `backward` was called on: with gradient
accumulation the last part's, divided as the script divides it.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from typing import Any, Callable, Deque, Dict, Optional, Tuple

from ..never_raise import guarded
from ..ring import TRAIN
from ..telemetry import Recorder, now
from . import among_ranks, deferred_reads
from .compile_phase import Compiling
from .fast_path import FastPath
from .loaders import Iteration, Loading, shape_of
from .loop import Loop, Loops, Round

LOOK_EVERY_S = 0.25  # whether the cheap values are due
TELL_EVERY_S = 0.025  # steps that are shorter are told together
NESTED = 100  # updates inside another's `step`; after so many that other one must have raised


class Telemetry:
    def __init__(self, recorder: Recorder, torch: Any, compiling: Compiling) -> None:
        self.recorder = recorder
        self.torch = torch
        self.compiling = compiling
        self.loops = Loops()
        self.lane = FastPath()
        self.loading = Loading(recorder)
        self.norms = deferred_reads.Norms(torch, recorder)
        self.grad_enabled = torch.is_grad_enabled
        self.look_at = 0.0
        self.loss_due = True  # whether backward is to look; so is the norm: clocks are read in one place
        self.norm_due = True
        self.scales = False  # a GradScaler is at work: an update may be skipped
        self.unsure: Deque[Tuple[deferred_reads.Read, Round]] = deque()
        self.training = False  # it was told that training begins
        self.nothing_else_due: Callable[[Loop], bool] = lambda _here: True  # of the other aspects of a step

    def leave(self, moment: float) -> None:
        """The short cut ends; another thread's goes on."""
        if self.lane.loop is self.loops.here:
            self.lane.settle(moment)
            self.lane.leave()

    def pause(self, iteration: Optional[Iteration], moment: float) -> None:
        """What lies between two batches of one iterator is the step's; what lies beside it only with a backward."""
        here = self.loops.here
        self.leave(moment)
        self.flush(here)
        if here.mark:
            if here.quiet == 0 or iteration is here.source:
                here.busy_s += moment - here.mark
            here.mark = 0.0

    def begun(self, loader: Any, iterator: Any, began: float) -> None:
        self.begins("loader")
        iterator._holdfast = self.loading.begin(loader, now() - began)
        if not self.compiling.listening:
            self.compiling.listen()

    def begins(self, by: str) -> None:
        if not self.training:
            self.training = True
            self.recorder.event("train.begun", by=by)

    def look_at_loader(self, iteration: Iteration) -> None:
        self.loading.look(iteration, self.loops.here.trains, self.grad_enabled())

    def arrived(self, iteration: Iteration, batch: Any, began: float) -> None:
        here = self.loops.here
        moment = now()
        if here.mark and (here.quiet == 0 or iteration is here.source):
            here.busy_s += began - here.mark
        here.mark = moment
        iteration.wait_s += moment - began
        here.quiet += 1
        if iteration is not here.source:
            here.source = self.loading.last = iteration
        if iteration.evaluates:
            return
        here.got_batch = True
        if here.quiet > 1 and here.trains:
            self.loading.suspect(iteration)
        fresh = here.fresh
        if not fresh or iteration not in fresh:
            fresh.append(iteration)
        if iteration is fresh[0]:
            here.shape = shape_of(batch)

    def ended(self, iteration: Iteration, began: float) -> None:
        self.pause(iteration, began)
        iteration.ended = True
        iteration.wait_s += now() - began
        self.loops.here.source = iteration

    def scaled(self, outputs: Any, result: Any) -> None:
        self.scales = True
        self.leave(now())
        if self.loss_due and isinstance(outputs, self.torch.Tensor):
            self.loops.here.scaled = (id(result), outputs.detach())

    def backward(self, tensor: Any) -> None:
        here = self.loops.here
        self.begins("backward")
        if not here.mark:
            here.mark = now()
        if self.loss_due:
            self.note_own_time(here)
            self.note_loss(here, tensor)

    def note_own_time(self, here: Loop) -> None:
        """Among ranks: how long this one took until its backward pass, in which all wait for the slowest."""
        if here.own is None:
            return
        (updated_at, ran_s), here.own = here.own, None
        own_s, own_cpu_s = now() - updated_at, time.thread_time() - ran_s
        self.recorder.offer("own_s", lambda: own_s)
        self.recorder.offer("own_cpu_s", lambda: own_cpu_s)

    def note_loss(self, here: Loop, tensor: Any) -> None:
        """Until it is offered, the last one before the update counts."""
        scaled, here.scaled = here.scaled, None
        if not self.recorder.wants("loss"):
            self.loss_due = False
        elif tensor.numel() == 1:
            here.loss = scaled[1] if scaled is not None and scaled[0] == id(tensor) else tensor.detach()

    def saving(self) -> float:
        self.leave(now())
        self.flush(self.loops.here)
        if self.loops.here.trains:
            self.loading.enter("save")
        return now()

    def saved(self, began: float) -> None:
        here = self.loops.here
        if here.trains:
            self.recorder.phase("train")
            if here.mark:
                here.mark += now() - began

    def before(self, optimizer: Any) -> None:
        name = id(optimizer)
        if self.lane.optimizer:
            self.leave(now())
        here = self.loops.here
        if here.updating not in (0, name):
            here.nested += 1
            if here.nested < NESTED:
                return
        here.updating, here.nested = name, 0
        here.opens = here.got_batch or name in here.round or not _any_alive(here.round)
        if self.norm_due and here.opens:
            self.norm_due = False
            self.norms.take(optimizer)

    def after(self, optimizer: Any) -> None:
        here = self.loops.here
        if here.updating != id(optimizer):
            return
        here.updating = 0
        moment = now()
        found_inf = getattr(optimizer, "found_inf", None) if self.scales else None  # a fused one skips in its kernel
        if found_inf is not None and found_inf.device.type == "cpu" and float(found_inf) > 0:
            self.norms.ready()
            return
        if here.mark:
            here.busy_s += moment - here.mark
        here.mark = moment
        here.quiet = 0
        if not here.opens:
            here.round[id(optimizer)] = weakref.ref(optimizer)
            here.sole = _nobody
            return
        if here.sole() is not optimizer:
            here.sole = weakref.ref(optimizer)
            here.round = {id(optimizer): here.sole}
        here.got_batch = False
        self.count(here, optimizer, found_inf, moment)
        if self.is_usual(here):
            self.lane.enter(here, id(optimizer), moment, min(moment + TELL_EVERY_S, self.look_at))

    def go_on(self, lane: FastPath, moment: float) -> None:
        """Steps shorter than a hundredth of a second are told together."""
        here = lane.loop
        lane.settle(moment)
        if here is not None:
            self.flush(here)
            if moment >= self.look_at:
                self.look_ahead(here, moment)
        if here is None or self.loss_due or self.norm_due or not self.nothing_else_due(here):
            lane.leave()
        else:
            lane.over_at = min(moment + TELL_EVERY_S, self.look_at)

    def flush(self, here: Loop) -> None:
        """Tells the usual steps that were not told yet: their waiting and computing has been adding up."""
        if here.pending:
            count, here.pending = here.pending, 0
            busy_s, here.busy_s = here.busy_s, 0.0
            current = self.loading.current
            if current is not None:
                self.recorder.waited(current.wait_s)
                current.wait_s = 0.0
            self.recorder.step(busy_s, 0, count)

    def is_usual(self, here: Loop) -> bool:
        """Nothing but its time will be new in the step to come."""
        source = here.source
        return (
            not (self.loss_due or self.norm_due or self.scales or self.unsure or here.nested or self.recorder.by_hand)
            and len(here.round) == 1
            and ((source.plain and source is self.loading.current) if source else self.loading.last is None)
            and self.nothing_else_due(here)
        )

    def count(self, here: Loop, optimizer: Any, found_inf: Any, moment: float) -> None:
        if found_inf is not None:  # whether this one counts is not known yet, those before it do
            self.flush(here)
        here.pending, pending = 0, here.pending
        if not here.trains:
            here.trains = True
            self.first(optimizer)
        fed = here.fresh if here.source is not None else self.loading.elsewhere()
        epoch, wait_s = self.loading.trained(fed)
        over = Round(pending, epoch, wait_s, here.busy_s, here.shape, self.norms.ready())
        here.fresh.clear()
        here.busy_s = 0.0
        if here.loss is not None:
            loss, here.loss = here.loss, None
            self.add(over, "loss", loss)
            self.loss_due = False
            self.look(over, optimizer)
        elif moment >= self.look_at:
            self.look(over, optimizer)
        if moment >= self.look_at:
            self.look_ahead(here, moment)
        if found_inf is not None:
            skipped = deferred_reads.reading(self.torch, found_inf)
            if skipped is not None:
                self.unsure.append((skipped, over))
                self.settle()
                return
        self.tell(over)

    def look_ahead(self, here: Loop, moment: float) -> None:
        """What is to be taken in the step that begins now."""
        self.look_at = moment + LOOK_EVERY_S
        self.loss_due = self.recorder.wants("loss")
        self.norm_due = moment >= self.norms.next_at
        here.own = (moment, time.thread_time()) if self.loss_due and among_ranks.are_several(self.torch) else None

    def look(self, over: Round, optimizer: Any) -> None:
        recorder = self.recorder
        if recorder.wants("learning_rate"):
            self.add(over, "learning_rate", optimizer.param_groups[0].get("lr"))
        if recorder.wants("allocated_bytes"):
            deferred_reads.offer_memory(self.torch, recorder, _device(optimizer))

    def add(self, over: Round, name: str, value: Any) -> None:
        read: Optional[deferred_reads.Read] = None
        if isinstance(value, self.torch.Tensor):
            read = deferred_reads.reading(self.torch, value)
        elif value is not None:
            read = lambda: float(value)  # noqa: E731
        if read is not None:
            over.values = over.values or {}
            over.values[name] = read

    def settle(self) -> None:
        """Steps of which only the GPU knows yet whether AMP skipped them, in order."""
        while self.unsure:
            skipped = self.unsure[0][0]()
            if skipped is None:
                return
            _, over = self.unsure.popleft()
            if not skipped:
                self.tell(over)

    def tell(self, over: Round) -> None:
        recorder = self.recorder
        if recorder.by_hand:
            return
        if recorder.phase_number != TRAIN:
            recorder.phase("train")
        if over.epoch >= 0:
            recorder.epoch(over.epoch)
        recorder.batch(over.shape)
        recorder.waited(over.wait_s)
        recorder.step(over.busy_s, 1, over.pending)
        if over.values:
            for name, read in over.values.items():
                recorder.offer(name, read)

    def first(self, optimizer: Any) -> None:
        atexit.register(guarded(self.last_words), self.loops.here)
        os.register_at_fork(after_in_child=self.forked)
        device = _device(optimizer)
        say = guarded(self.say_device)
        if device.type == "cpu" and self.torch.version.cuda:  # a wedged driver may not answer: not on this thread
            threading.Thread(target=say, args=(device,), name="holdfast-gpus", daemon=True).start()
        else:
            say(device)

    def last_words(self, here: Loop) -> None:
        self.leave(now())
        self.flush(here)
        self.settle()

    def forked(self) -> None:
        """What the parent has begun is the parent's to tell."""
        self.lane.leave()
        self.loops.here = Loop()
        self.unsure = deque()

    def say_device(self, device: Any) -> None:
        built, gpus = deferred_reads.gpus(self.torch, device)
        self.recorder.event("train.device", framework="torch", device=device.type, built_for=built, gpus=gpus)


def _nobody() -> None:
    return None


def _any_alive(round_: Dict[int, Any]) -> bool:
    return any(optimizer() is not None for optimizer in round_.values())


def _device(optimizer: Any) -> Any:
    return optimizer.param_groups[0]["params"][0].device
