"""What is kept of a trainer's objects, and the loops of trainers that cannot be left at a batch and entered again."""

from __future__ import annotations

from itertools import groupby
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.inside.script_state.own_files import OwnFiles
from holdfast.inside.script_state.refusal import CannotTake
from holdfast.inside.torch import lightning_resume, trainer_objects
from holdfast.inside.torch.loader_position import ATTRIBUTE


class _Trainer:
    reload_dataloaders_every_n_epochs = 0
    world_size = 1

    def __init__(self, *iterators: Any) -> None:
        loader = SimpleNamespace(_iterator=SimpleNamespace(iterators=list(iterators)))
        self.fit_loop = SimpleNamespace(_combined_loader=loader)


class _Followed:
    pass


setattr(_Followed, ATTRIBUTE, object())


def loop_of(trainer: _Trainer) -> lightning_resume.EpochLoop:
    return lightning_resume.EpochLoop(SimpleNamespace(trainer=trainer))


def test_a_loop_over_loaders_that_are_followed_is_taken() -> None:
    assert loop_of(_Trainer(_Followed(), iter([1, 2]))).check() is None  # type: ignore[func-returns-value]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("reload_dataloaders_every_n_epochs", 2, "reload_dataloaders_every_n_epochs"),
        ("world_size", 2, "several processes"),
    ],
)
def test_what_cannot_be_entered_again_is_refused_in_words(name: str, value: int, said: str) -> None:
    trainer = _Trainer(_Followed())
    setattr(trainer, name, value)
    with pytest.raises(CannotTake, match=said):
        loop_of(trainer).check()


def test_data_whose_place_cannot_be_told_is_refused_by_name() -> None:
    with pytest.raises(CannotTake, match=r"comes from itertools\.groupby"):
        loop_of(_Trainer(_Followed(), groupby([1, 2]))).check()


def test_a_trainer_that_trains_to_find_a_learning_rate_is_refused_from_then_on() -> None:
    trainer = _Trainer(_Followed())
    frame: Any = SimpleNamespace(
        f_back=None, f_code=SimpleNamespace(co_filename="/lightning/pytorch/tuner/lr_finder.py")
    )
    assert lightning_resume._host_of(SimpleNamespace(trainer=trainer), frame) is None
    with pytest.raises(CannotTake, match="find a learning rate"):
        loop_of(trainer).check()


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, empty in (("rules", []), ("left", ()), ("known", {})):
        monkeypatch.setattr(trainer_objects._Registered, name, empty)


@pytest.mark.usefixtures("rules")
def test_of_an_object_of_a_library_what_is_registered_is_kept() -> None:
    class Base:
        pass

    class Bar(Base):
        pass

    bar = Bar()
    assert not trainer_objects.is_kept(bar) and not trainer_objects.is_skipped(bar, "step", 1)
    trainer_objects.register(Base, trainer_objects.these("step"))
    assert trainer_objects.is_kept(bar)
    assert not trainer_objects.is_skipped(bar, "step", 1) and trainer_objects.is_skipped(bar, "file", 1)
    trainer_objects.leave(__name__)
    assert trainer_objects.is_skipped(bar, "step", 1) and not trainer_objects.can_be_made(Bar)


def test_data_is_told_from_state_by_its_size() -> None:
    assert trainer_objects.is_small([1] * 1000) and trainer_objects.is_small("a" * 5000)
    assert not trainer_objects.is_small([1] * 1001) and not trainer_objects.is_small(SimpleNamespace(shape=(1,)))


def test_a_folder_that_an_earlier_attempt_wrote_is_known(tmp_path: Any) -> None:
    folder = tmp_path / "checkpoint-10"
    OwnFiles(str(tmp_path)).saved(str(folder / "optimizer.pt"))
    later = OwnFiles(str(tmp_path))
    assert later.holds(str(folder)) and not later.holds(str(tmp_path / "checkpoint-1"))
    later.saved(str(folder / "optimizer.pt"))
    assert not later.holds(str(folder)), "this attempt wrote it itself"


def test_a_trainer_among_ranks_says_that_no_checkpoints_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.inside.script_state.rank_checkpoints import RankCheckpoints
    from holdfast.inside.torch import hf_resume, kept_loops

    assert hf_resume.why_not() == ""
    monkeypatch.setattr(kept_loops._here, "kept", object.__new__(RankCheckpoints))
    assert "several ranks" in hf_resume.why_not()
