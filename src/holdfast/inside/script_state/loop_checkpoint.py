"""Checkpoints of loops as people write them: when one is due, where it can be taken, and going on from it.

The state is taken when the loop asks its loader for a batch; in a loop without a loader, where a step begins: gradients have
been cleared, a tape is about to record, a function that trains is about to be called.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from types import FrameType
from typing import Any, Callable, List, Optional

from .. import checkpoint_store, relieve
from ..background_save import Done, Saver
from ..headroom import left
from ..never_raise import guarded, outcome
from ..preemption import Preemption
from ..save_interval import Pace
from ..telemetry import LATER, Recorder, now
from .begun_further_on import BegunFurtherOn
from .data_position import ATTRIBUTE, Position, check_threads_and_others
from .frames import TRANSPARENT, UPDATING, check_callers, innermost_user, stand_of, users
from .loop_framework import EpochLoop, LoopFramework
from .loop_heads import COUNTED
from .loop_snapshot import Here, SavedLoop, Snapshot, where
from .loop_trails import ALL_LATE, PLACE, Trails, TurnStarts, check_nothing_trains_before
from .own_files import OwnFiles, tell_it_goes_on_by_itself
from .refusal import BetweenPasses, CannotTake, NotPrepared, RunByALibrary

KIND, NEVER = "loop", float("inf")
RETRY_S = 0.5  # while the last one is still being written
# Another place is looked for: soon at first, then seldom; then it is said.
ELSEWHERE_S, SELDOM_S, COMPLAIN_AFTER_S = 0.05, 2.0, 5.0
GROWS_BY, SPARE_BYTES = 4, 128 << 20  # a sixteenth more than is needed now; left to the step itself beside copies
WITHOUT_LOADER = 10  # so many steps were begun and no batch came: the loop has no loader


class LoopCheckpoints:
    def __init__(
        self, recorder: Recorder, framework: LoopFramework, wanted: Any, went_on: Callable[[int], None]
    ) -> None:
        self.recorder = recorder
        self.framework = framework
        self._before_update = guarded(framework.before_update)
        self._went_on = went_on  # told the epoch
        self.saver = Saver(recorder, str(wanted["directory"]))
        self.pace = Pace(wanted.get("interval_s"))
        self.positions: List[Position] = []
        self._made = 0
        self.trails = Trails(framework.is_one_ahead)
        self._turns = TurnStarts()
        self._changing_data = False  # a loop goes over other data in each turn of those around it
        self._newest: dict[Any, Any] = {}  # by place: what the newest iterator there depends on
        self._places: Optional[Trails] = None  # of steps in a loop without a loader, while a checkpoint is due
        self.update_count = 0  # of weights
        self._trained_before = ""  # the first loop over data, where something trains before it
        self.next_at = NEVER  # read for every batch
        self.begun = 0  # steps since the last batch
        self.after_backward = False  # such a loop clears its gradients when a graph waits: the place is behind that
        self.passes = 0  # backward passes, where they are followed
        self.at_update = False  # gradients are made by a function that the optimizer calls, or without a backward pass
        self.pending: Optional[Snapshot] = None
        self._manifest: dict[str, Any] = {}
        self._preparing: Optional[threading.Thread] = None
        self._done: Optional[Done] = None
        self._ending: Optional[Callable[[], None]] = None
        self._retry_s = ELSEWHERE_S
        self._refused_since: Optional[float] = None
        self._refused_step = 0
        self.training = False
        self.host: Optional[EpochLoop] = None  # runs the loop, and says where its state can be taken
        self.own = OwnFiles(str(wanted["directory"]))
        self.goal: Optional[SavedLoop] = None
        self.plan: Optional[BegunFurtherOn] = None
        os.register_at_fork(after_in_child=self._after_fork)
        if wanted.get("resume"):
            self._prepare(wanted.get("newest", checkpoint_store.newest))

    # -- what the script does

    @guarded
    def about_to_make(self, source: Any) -> Any:
        return self.framework.about_to_make(source)

    @guarded
    def made(self, source: Any, iterator: Any, made: Any) -> None:
        if made is None:
            return
        position = self.framework.position(self._made, source, made)
        self._made += 1
        position.iterator = weakref.ref(iterator)
        setattr(iterator, ATTRIBUTE, position)
        self.framework.follow(iterator, position)
        self.positions = [one for one in self.positions if not one.ended and one.iterator() is not None]
        self.positions.append(position)

    @guarded
    def first_batch(self, position: Position, frame: FrameType) -> None:
        position.first = self.framework.data_random_state()
        user = innermost_user(frame)
        position.stand = stand_of(user) if user is not None else None
        self._turns.note(users(frame))
        before = self._newest.get(position.stand)
        self._newest[position.stand] = position.made
        if before is not None and not self.framework.same_data(before, position.made):
            self._changing_data |= not self.framework.keeps_data(position.source())
        if self.update_count and not self.trails.is_begun and position.stand is not None:
            self._trained_before = position.stand.words
        self.trails.begins(frame, self.update_count)

    def step_begins(self, frame: FrameType, arguments: Any = ()) -> Any:
        """In a loop that may have no loader. Returns the arguments of the call that is under way."""
        self.begun += 1
        if self.host is not None:
            return arguments
        if self.goal is not None:
            return self.try_to_go_on(None, frame, arguments)
        if self.begun > WITHOUT_LOADER and not (self.after_backward or self.at_update) and now() >= self.next_at:
            self._at_step(frame, arguments)
        return arguments

    def gradients_made(self, frame: FrameType) -> None:
        """A backward pass is over. What is taken here has its gradients with it."""
        self.passes += 1
        if self.host is not None:
            return
        if self.goal is not None:
            self.try_to_go_on(None, frame)
        elif self.begun > WITHOUT_LOADER and now() >= self.next_at:
            self._at_step(frame, ())
            if self.pending is not None:
                self.decide()

    @property
    def is_looking(self) -> bool:
        """For a place in a loop without a loader: each update must be told."""
        return self._places is not None or self.at_update

    @guarded
    def _at_step(self, frame: FrameType, arguments: Any) -> None:
        """A turn is looked at first: a script that is started again must not train before it comes to the place."""
        if self._places is None or self._places.has_missed(self.update_count):
            self._places = Trails(self.framework.is_one_ahead)
        found = self._places.visited(frame, self.update_count)
        if found == PLACE:
            self._places = None
            self.boundary(None, frame, arguments)
        elif found == ALL_LATE and self.after_backward:
            self._refused("its weights change in each turn before the places at which its state could be taken")
        elif found == ALL_LATE:  # gradients are cleared at the end of a turn: its backward pass comes before the update
            self._places, self.after_backward = None, True

    def updates(self, optimizer: Any = None) -> None:
        """An optimizer is about to change the weights."""
        if self.goal is not None:
            self.try_to_go_on(None, sys._getframe(1))
            self.has_not_gone_on()
        if self.at_update and now() >= self.next_at:
            self.boundary(None, sys._getframe(1))
        if self._places is not None:
            guarded(self._places.updated)(sys._getframe(1), self.update_count)
        self.update_count += 1
        if self.pending is not None:
            self.decide()
        waited_s = self._before_update(optimizer)
        if waited_s:
            self._paused_longer(waited_s)
        if not self.training:
            self.training = True
            guarded(self._begin)()

    def has_not_gone_on(self) -> None:
        """It is about to train: it must have come to the place where it was."""
        if self.goal is not None:
            raise self.stop(self.goal.why_not_gone_on)

    def nothing_came(self, position: Position) -> None:
        """The data is over: what was taken at this place would be gone on from at the end of an epoch."""
        position.ended = True
        self._turns.last = self.framework.data_random_state()
        if self.pending is not None:
            self.pending, self.next_at = None, 0.0

    @guarded
    def _paused_longer(self, seconds: float) -> None:
        if self._refused_since is not None:  # what was copied was given up
            return
        pause_s = float(self._manifest["paused_s"]) + seconds
        self._manifest["paused_s"] = round(pause_s, 6)
        self.next_at = max(self.next_at, self.pace.saved(now(), pause_s, self.saver.write_s)) if self.next_at else 0.0

    def _begin(self) -> None:
        try:
            if self.host is None:
                check_callers(sys._getframe(), (*TRANSPARENT, *UPDATING))
        except RunByALibrary as error:  # which may have checkpoints of its own; its signals are its own, too
            self.recorder.event("checkpoint.not_made", reason=str(error))
            return
        except CannotTake:
            pass  # that is seen again, and told, where a checkpoint is due
        if not self.saver.claim():  # `holdfast.keep` in this process, or another one
            self.saver.complain("another process of this run trains and saves already")
            return
        self.recorder.on_command("checkpoint", self._asked)
        relieve.GIVEN_BACK.append(self.framework.let_go)
        Preemption(self.recorder, self._save_then).install()
        self.next_at = self.pace.began(now())

    def _after_fork(self) -> None:
        """The memory for copies is the parent's, which saves."""
        self.framework.let_go()
        self.pending = self._preparing = None
        self.next_at = NEVER

    # -- saving

    @guarded
    def boundary(self, position: Optional[Position], frame: FrameType, arguments: Any = ()) -> None:
        if self.pending is not None:
            self.decide()
        if self._preparing is not None:
            if self._preparing.is_alive() and self._done is None and self._ending is None:
                self.next_at = now() + ELSEWHERE_S
                return
            self._preparing.join()
            self._preparing = None
        if self.saver.busy:
            if self._done is None and self._ending is None:
                self.next_at = now() + RETRY_S
                return
            self.saver.wait()
        began = now()
        self.next_at = self.pace.saved(began, 0.0, self.saver.write_s)  # also where the state cannot be taken
        try:
            snapshot = self._taken(position, frame, arguments)
        except CannotTake as error:
            self.after_backward = self.after_backward or (position is None and isinstance(error, BetweenPasses))
            self.at_update = self.at_update or (position is None and isinstance(error, RunByALibrary))
            self._refused(str(error))
            return
        except NotPrepared as wanted:
            self._prepare_memory(wanted.size)
            self.next_at = now() + ELSEWHERE_S
            return
        self.pending, self._refused_since = snapshot, None
        self._retry_s = ELSEWHERE_S
        batch = position.count if position is not None else self.host.batch if self.host is not None else 0
        self._manifest = {"framework": self.framework.name, "kind": KIND, "step": self.recorder.steps, "fit": 0}
        self._manifest |= {"by": self.host.title if self.host is not None else ""}
        self._manifest |= {"epoch": self.recorder.epoch_number, "batch": batch, "paused_s": round(now() - began, 6)}
        self.next_at = self.pace.saved(now(), now() - began, self.saver.write_s)
        at_once = position is None and not snapshot.taking.needs_next_step
        if self._ending is not None or not snapshot.is_held or at_once:
            self.decide()
        if not snapshot.is_held:
            self.saver.wait()

    def _taken(self, position: Optional[Position], frame: FrameType, arguments: Any) -> Snapshot:
        here = where(frame, lambda value: isinstance(value, self.framework.followed), position is not None)
        self._check(here, position)
        may_wait = self._done is None and self._ending is None
        under_way = self._under_way()
        snapshot = Snapshot(self.framework, here, position, under_way, arguments, self._has_room, may_wait)
        snapshot.rest["turns"] = dict(self._turns.states)
        return snapshot

    def _prepare_memory(self, size: int) -> None:
        """By a thread, before the pause: the next boundary finds it."""
        prepare, size = guarded(self.framework.prepare_memory), size + (size >> GROWS_BY)
        self._preparing = threading.Thread(target=prepare, args=(size,), name="holdfast-memory", daemon=True)
        self._preparing.start()

    def _under_way(self) -> List[Position]:
        return self.positions if self.host is None else self.host.fed_by(self.positions)

    def _has_room(self, size: int) -> bool:
        groups = self.recorder.settings.get("groups")
        room = left(groups) if groups else None
        return room is None or bool(room.bytes >= size + SPARE_BYTES)

    def _check(self, here: Here, position: Optional[Position]) -> None:
        self.framework.check(self.positions)
        if self.host is not None:
            self.host.check()
        if self._changing_data and not any(head.kind in COUNTED for heads in here.heads for head in heads):
            raise CannotTake("the data is made anew in each turn of a loop that is no `for` over a range or a list")
        earlier = self._trained_before if position is not None else ""  # a loop without a loader may validate over one
        check_nothing_trains_before(self.trails, here.frames, here.chain, self.update_count, bool(earlier))
        check_threads_and_others(self.positions, position)

    @guarded
    def decide(self) -> None:
        """The next step begins: what was taken is a state to go on from, and is written."""
        snapshot, self.pending = self.pending, None
        done, self._done = self._done, None
        if snapshot is None:
            return
        try:
            snapshot.taking.settle()
        except CannotTake as error:
            self._refused(str(error))
            return
        self.saver.begin(self._manifest, snapshot.filling(), snapshot.taking.bytes, done)
        if self._ending is not None:
            end, self._ending = self._ending, None
            self.saver.wait()
            end()

    def _refused(self, reason: str) -> None:
        moment = now()
        if self._refused_since is None:
            self._refused_since, self._refused_step = moment, self.recorder.steps
        self.next_at = moment + self._retry_s
        self._retry_s = min(SELDOM_S, self._retry_s * 1.5)
        trained = self.recorder.steps > self._refused_step  # a long validation has nothing to save
        if (moment - self._refused_since > COMPLAIN_AFTER_S and trained) or self._done is not None:
            self.saver.complain(reason)
        if self._done is not None:
            done, self._done = self._done, None
            done(reason)
        if self._ending is not None and moment - self._refused_since > 1.0:
            end, self._ending = self._ending, None
            end()

    def _asked(self, command: dict[str, Any]) -> object:
        recorder, identity = self.recorder, command.get("id")
        self._done = lambda result: recorder.event("command.done", id=identity, do="checkpoint", result=result)
        self.next_at = 0.0
        return LATER

    def _save_then(self, end: Callable[[], None]) -> bool:
        if not self.training or self.goal is not None:
            return False
        self._ending, self.next_at = end, 0.0
        return True

    # -- going on

    def _prepare(self, newest: Callable[[str], Optional[dict[str, Any]]]) -> None:
        manifest = newest(self.saver.directory)
        if manifest is None or (manifest.get("kind"), manifest.get("framework")) != (KIND, self.framework.name):
            return
        self.goal = self.or_stop(SavedLoop, self.framework, manifest)
        self.plan = self.goal.plan(self.or_stop, self._turn_begins)
        self.plan.install()
        self.goal.reopened.install()

    def _turn_begins(self, level: int, line: int) -> None:
        state = self.goal.random_state_of_turn(level, line) if self.goal is not None else None
        if state is not None:
            self.or_stop(self.framework.put_data_random_state, state)

    def try_to_go_on(self, iterator: Any, frame: FrameType, arguments: Any = ()) -> Any:
        """The arguments of the call that is under way: those that were saved, once the state was put back."""
        goal, plan = self.goal, self.plan
        if goal is None or plan is None or not goal.is_at(frame):
            return arguments
        self.goal = None
        arguments = self.or_stop(goal.put_back, frame, iterator, self._under_way, arguments, plan)
        plan.put_turns()
        plan.remove()
        self._turns.states = dict(goal.rest["turns"])
        plan.resumed_items = goal.resumed_items(self.framework.is_one_ahead(goal.chain[-1].key))
        self.recorder.steps = int(goal.manifest["step"])
        self._went_on(int(goal.manifest["epoch"]))
        self.recorder.event("checkpoint.restored", **goal.told)
        return arguments

    def is_newer_than(self, path: str) -> bool:
        return self.goal is not None and self.goal.is_newer_than(path)

    def loaded_its_own(self, path: str) -> None:
        """What a trainer has loaded is put over as a whole when it comes to the place."""
        if not (self.goal is not None and self.goal.is_by_trainer and self.goal.is_newer_than(path)):
            self.has_its_own(path)

    def has_its_own(self, path: str) -> None:
        """The script has loaded what it saved in an earlier attempt: it goes on by itself."""
        if self.goal is None or self.plan is None:
            return
        self.goal.reopened.remove()
        self.goal = None
        self.plan.remove()
        tell_it_goes_on_by_itself(self.recorder, path)

    def or_stop(self, do: Callable[..., Any], *args: Any) -> Any:
        result, error = outcome(do, *args)
        if error is not None:
            raise self.stop(error)
        return result

    def stop(self, reason: Any) -> SystemExit:
        """What cannot be put back is not trained over."""
        if self.goal is not None:
            self.goal.reopened.put_back()
        is_edited = self.goal is not None and self.goal.is_edited
        return checkpoint_store.mismatch(self.recorder, reason, is_edited)
