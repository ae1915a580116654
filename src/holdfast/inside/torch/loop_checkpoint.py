"""Checkpoints of PyTorch loops as people write them: when one is due, where it can be taken, and going on from it.

The state is taken when the loop asks its loader for a batch; in a loop without a loader, when gradients have been
cleared. Whether gradients belong to it is seen at the next backward pass.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from types import FrameType
from typing import Any, Callable, List, Optional, Protocol, Set

from .. import checkpoint_store, relieve
from ..background_save import Done, Saver
from ..headroom import left
from ..never_raise import guarded, outcome
from ..preemption import Preemption
from ..save_interval import Pace
from ..script_state.begun_further_on import BegunFurtherOn
from ..script_state.frames import check_callers, innermost_user, stand_of
from ..script_state.refusal import CannotTake, RunByALibrary
from ..telemetry import LATER, Recorder, now
from . import seams
from .copied_memory import NotPrepared, own_memory, touched
from .loader_position import ATTRIBUTE, Made, Position, follow_indices, made_of
from .loop_state import Here, SavedLoop, Snapshot, where
from .loop_trails import Trails
from .own_files import OwnFiles
from .random_state import capture
from .tensor_store import KEPT_BYTES, Block

KIND = "loop"
NEVER = float("inf")
RETRY_S = 0.5  # while the last one is still being written
ELSEWHERE_S, SELDOM_S = 0.05, 2.0  # another place is looked for: soon at first, then seldom
COMPLAIN_AFTER_S = 5.0
GROWS_BY = 4  # a sixteenth more than is needed now: variables grow
OWN_AHEAD_S = 60.0  # a trainer's own checkpoint is gone on from where it is so much newer than ours
SPARE_BYTES = 128 << 20  # left to the step itself beside copies of all it updates
WITHOUT_LOADER = 10  # gradients were cleared so often and no batch came: the loop has no loader


class EpochLoop(Protocol):
    """What is to be known of a loop that a trainer runs."""

    title: str

    @property
    def batch(self) -> int: ...
    def fed_by(self, positions: List[Position]) -> List[Position]: ...
    def check(self) -> None: ...  # raises CannotTake


class LoopCheckpoints:
    def __init__(
        self, recorder: Recorder, torch: Any, wanted: Any, iterate: Any, following: Any, went_on: Callable[[int], None]
    ) -> None:
        self.recorder = recorder
        self.torch = torch
        self._went_on = went_on  # told the epoch
        self._iterate, self._following = iterate, following  # PyTorch's own
        self.saver = Saver(recorder, str(wanted["directory"]))
        self.pace = Pace(wanted.get("interval_s"))
        self.positions: List[Position] = []
        self._made = 0
        self.trails = Trails()
        self.next_at = NEVER  # read for every batch
        self.cleared = 0  # times since the last batch
        self.pending: Optional[Snapshot] = None
        self._manifest: dict[str, Any] = {}
        self._block: Optional[Block] = None
        self._preparing: Optional[threading.Thread] = None
        self._copying: Optional[Block] = None  # until the next update
        self._optimizers: Any = weakref.WeakSet()  # that have made a step
        self._done: Optional[Done] = None
        self._ending: Optional[Callable[[], None]] = None
        self._retry_s = ELSEWHERE_S
        self._refused_since: Optional[float] = None
        self._refused_step = 0
        self.training = False
        # A trainer of a library's that runs the loop, and says itself where its state can be taken.
        self.host: Optional[EpochLoop] = None
        self.own = OwnFiles(str(wanted["directory"]))
        self.goal: Optional[SavedLoop] = None
        self.plan: Optional[BegunFurtherOn] = None
        self._followed = (seams.loader_module().DataLoader, seams.loader_iterator_class())
        os.register_at_fork(after_in_child=self._after_fork)
        if wanted.get("resume"):
            self._prepare()

    # -- what the script does

    @guarded
    def about_to_make(self, loader: Any) -> Made:
        return made_of(self.torch, loader)

    @guarded
    def made(self, loader: Any, iterator: Any, made: Optional[Made]) -> None:
        if made is None:
            return
        position = Position(self._made, loader, made)
        self._made += 1
        position.iterator = weakref.ref(iterator)
        setattr(iterator, ATTRIBUTE, position)
        follow_indices(iterator, position)
        self.positions = [one for one in self.positions if not one.ended and one.iterator() is not None]
        self.positions.append(position)

    @guarded
    def first_batch(self, position: Position, frame: FrameType) -> None:
        position.first = capture(self.torch)
        user = innermost_user(frame)
        position.stand = stand_of(user) if user is not None else None
        self.trails.begins(frame, self.recorder.steps)

    def updates(self, optimizer: Any) -> None:
        """An optimizer is about to change the weights."""
        if self.goal is not None:
            place = self.goal.chain[-1].words
            edited = f"the code at {place} was edited since"
            raise self.stop(edited if self.goal.is_edited else f"it trains before it comes to {place}, where it was")
        if self.pending is not None:
            self.decide()
        if self._copying is not None:
            guarded(self._finish_copying)()
        if optimizer not in self._optimizers:
            self._optimizers.add(optimizer)
        if not self.training:
            self.training = True
            guarded(self._begin)()

    def nothing_came(self, position: Position) -> None:
        """The data is over: what was taken at this place would be gone on from at the end of an epoch."""
        position.ended = True
        if self.pending is not None:
            self.pending = None
            self.next_at = 0.0

    def _finish_copying(self) -> None:
        """What is still waited for here belongs to the pause."""
        began, block, self._copying = now(), self._copying, None
        if block is not None:
            block.finish()
        pause_s = float(self._manifest["paused_s"]) + now() - began
        self._manifest["paused_s"] = round(pause_s, 6)
        self.next_at = max(self.next_at, self.pace.saved(now(), pause_s, self.saver.write_s)) if self.next_at else 0.0

    def _begin(self) -> None:
        try:
            if self.host is None:
                check_callers(sys._getframe())
        except (
            RunByALibrary
        ) as error:  # a trainer of a library's has checkpoints of its own; its signals are its own, too
            self.recorder.event("checkpoint.not_made", reason=str(error))
            return
        except CannotTake:
            pass  # that is seen again, and told, where a checkpoint is due
        if not self.saver.claim():  # `holdfast.keep` in this process, or another one
            self.saver.complain("another process of this run trains and saves already")
            return
        self.recorder.on_command("checkpoint", self._asked)
        relieve.GIVEN_BACK.append(self._let_go_of_block)
        Preemption(self.recorder, self._save_then).install()
        self.next_at = self.pace.began(now())

    def _let_go_of_block(self) -> None:
        self._block = None

    def _after_fork(self) -> None:
        """The memory for copies is the parent's, which saves."""
        self._block = self.pending = self._preparing = self._copying = None
        self.next_at = NEVER

    # -- saving

    @guarded
    def boundary(self, position: Optional[Position], frame: FrameType) -> None:
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
        if self._copying is not None:  # what was taken last was given up, and its memory is used again
            self._copying.finish()
        began = now()
        self.next_at = self.pace.saved(began, 0.0, self.saver.write_s)  # also where the state cannot be taken
        try:
            snapshot = self._taken(position, frame)
        except CannotTake as error:
            self._refused(str(error))
            return
        except NotPrepared as wanted:
            self._prepare_memory(wanted.size)
            self.next_at = now() + ELSEWHERE_S
            return
        self.pending, self._refused_since = snapshot, None
        block = snapshot.block
        self._copying = block if isinstance(block, Block) else None
        self._block = self._copying if block.bytes <= KEPT_BYTES else None
        self._retry_s = ELSEWHERE_S
        batch = position.count if position is not None else self.host.batch if self.host is not None else 0
        self._manifest = {"framework": "torch", "kind": KIND, "step": self.recorder.steps, "fit": 0, "batch": batch}
        self._manifest |= {"by": self.host.title if self.host is not None else ""}
        self._manifest |= {"epoch": self.recorder.epoch_number, "paused_s": round(now() - began, 6)}
        self.next_at = self.pace.saved(now(), now() - began, self.saver.write_s)
        if self._ending is not None or not snapshot.is_copied:
            self.decide()
        if not snapshot.is_copied:
            self.saver.wait()

    def _taken(self, position: Optional[Position], frame: FrameType) -> Snapshot:
        here = where(frame, lambda value: isinstance(value, self._followed), position is not None)
        self._check(here, position)
        may_wait = self._done is None and self._ending is None
        room, unchanged = self._has_room, self._states_of_optimizers()
        return Snapshot(self.torch, here, position, self._under_way(), self._block, room, may_wait, unchanged)

    def _states_of_optimizers(self) -> Set[int]:
        """By id: only an optimizer's step writes them, and it is told before."""
        states = [state for optimizer in self._optimizers for state in optimizer.state.values()]
        return {id(one) for state in states if isinstance(state, dict) for one in state.values()}

    def _prepare_memory(self, size: int) -> None:
        """By a thread, before the pause: the next boundary finds it."""
        size += size >> GROWS_BY

        def prepare() -> None:
            self._block = Block(self.torch, [], 0, touched(own_memory(self.torch, size)))

        self._preparing = threading.Thread(target=guarded(prepare), name="holdfast-memory", daemon=True)
        self._preparing.start()

    def _under_way(self) -> List[Position]:
        return self.positions if self.host is None else self.host.fed_by(self.positions)

    def _has_room(self, size: int) -> bool:
        groups = (self.recorder.settings.get("rescue") or {}).get("groups")
        room = left(groups) if groups else None
        return room is None or bool(room.bytes >= size + SPARE_BYTES)

    def _check(self, here: Here, position: Optional[Position]) -> None:
        if self.torch.distributed.is_available() and self.torch.distributed.is_initialized():
            raise CannotTake("several processes train together, which is not followed yet")
        if self.host is not None:
            self.host.check()
        self.trails.check(here.frames, here.chain, self.recorder.steps)
        if threading.current_thread() is not threading.main_thread():
            raise CannotTake("another thread than the main one asks for data")
        for other in self.positions:
            if other.thread != threading.get_ident() and not other.ended and other.iterator() is not None:
                raise CannotTake("another thread reads the data ahead")
            beside = position is not None and other is not position and other.stand == position.stand
            if beside and not other.ended and other.iterator() is not None and other.count > position.count:  # type: ignore[union-attr]
                raise CannotTake("several loaders are asked at once")

    @guarded
    def decide(self) -> None:
        """Gradients that are still there now are added to, or used: they belong to the state."""
        snapshot, self.pending = self.pending, None
        done, self._done = self._done, None
        if snapshot is None:
            return
        try:
            snapshot.add_gradients()
        except CannotTake as error:
            self._refused(str(error))
            return
        self.saver.begin(self._manifest, snapshot.filling(), snapshot.bytes, done)
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
        self._ending = end
        self.next_at = 0.0
        return True

    # -- going on

    def _prepare(self) -> None:
        manifest = checkpoint_store.newest(self.saver.directory)
        if manifest is None or manifest.get("kind") != KIND:
            return
        self.goal = self.or_stop(SavedLoop, self.torch, manifest)
        assert self.goal is not None
        self.plan = BegunFurtherOn(self.goal.chain, self.goal.heads, self.goal.rest["modules"], self.or_stop)
        self.plan.install()

    def try_to_go_on(self, iterator: Any, frame: FrameType) -> None:
        goal, plan = self.goal, self.plan
        if goal is None or plan is None or not goal.is_at(frame):
            return
        self.goal = None
        plan.remove()
        self.or_stop(goal.put_back, frame, iterator, self._under_way(), self._iterate, self._following)
        current = goal.rest["current"]
        if current is not None:
            ahead = seams.is_one_ahead(goal.chain[-1].key)
            from_the_first = ahead or current["stand"] == goal.chain[-1]
            plan.resumed_items = max(0, current["count"] - ahead) if from_the_first else -1
        else:
            plan.resumed_items = 0
        self.recorder.steps = int(goal.manifest["step"])
        self._went_on(int(goal.manifest["epoch"]))
        told = {key: goal.manifest[key] for key in ("number", "step", "fit", "epoch", "batch")}
        self.recorder.event("checkpoint.restored", **told)

    @property
    def goal_is_hosted(self) -> bool:
        """What the trainer has loaded is put over as a whole when it comes to the place."""
        return self.goal is not None and bool(self.goal.manifest.get("by"))

    def is_newer_than(self, path: str) -> bool:
        """Whether the checkpoint to go on from was written after this file, or not much before: ours is exact."""
        if self.goal is None or not os.path.exists(path):
            return False
        written = os.path.join(str(self.goal.manifest["path"]), checkpoint_store.MANIFEST)
        return os.path.getmtime(written) >= os.path.getmtime(path) - OWN_AHEAD_S

    def has_its_own(self, path: str) -> None:
        """The script has loaded what it saved in an earlier attempt: it goes on by itself."""
        if self.goal is None or self.plan is None:
            return
        self.goal = None
        self.plan.remove()
        self.recorder.event("checkpoint.own", path=path)
        print(
            f"holdfast: the script goes on from its own checkpoint, {path}; Holdfast puts none over it",
            file=sys.stderr,
            flush=True,
        )

    def or_stop(self, do: Callable[..., Any], *args: Any) -> Any:
        result, error = outcome(do, *args)
        if error is not None:
            raise self.stop(error)
        return result

    def stop(self, reason: Any) -> SystemExit:
        """What cannot be put back is not trained over."""
        return checkpoint_store.mismatch(self.recorder, reason)
