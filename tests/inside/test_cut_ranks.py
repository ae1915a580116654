"""Out of memory on one of two ranks: it cuts its own batches, the other one waits for it, and both end as if nothing had been."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("needs PyTorch", allow_module_level=True)

TOP = Path(__file__).parents[2]
KINDS = ("plain", "unused", "bucket views", "small buckets")


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    store = tmp_path_factory.mktemp("ranks") / "store"
    command = [sys.executable, "-W", "ignore", "-m", "tests.inside.cut_ranks"]
    started = [
        subprocess.Popen([*command, str(rank), str(store)], cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for rank in (0, 1)
    ]
    ended = [one.communicate(timeout=200) for one in started]
    assert [one.returncode for one in started] == [0, 0], ended[1][1].decode()[-3000:]
    return [json.loads(output.splitlines()[-1]) for output, _ in ended]


@pytest.mark.parametrize("kind", KINDS)
def test_a_healthy_job_is_the_same_to_the_last_bit(ranks: list[dict[str, Any]], kind: str) -> None:
    untouched = {"apart": 0.0, "pieces": 1, "refused": [], "failed": []}
    assert [rank[f"{kind}, healthy"] for rank in ranks] == [untouched, untouched]


@pytest.mark.parametrize("where", ["forward", "backward"])
@pytest.mark.parametrize("kind", KINDS)
def test_one_rank_in_pieces_gives_both_the_same_weights(ranks: list[dict[str, Any]], kind: str, where: str) -> None:
    other, cut = (rank[f"{kind}, {where}"] for rank in ranks)

    assert (other["pieces"], cut["pieces"] > 1) == (1, True)
    assert other["apart"] == cut["apart"] < 1e-15
    assert cut["refused"] == cut["failed"] == []


def test_both_ranks_may_be_cut(ranks: list[dict[str, Any]]) -> None:
    cut = [(rank["both ranks"]["pieces"] > 1, rank["both ranks"]["apart"] < 1e-15) for rank in ranks]
    assert cut == [(True, True)] * 2


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_call_that_talks_to_other_ranks_fails_as_it_always_did(ranks: list[dict[str, Any]], when: str) -> None:
    """And nothing more is sent by it: both ranks get their error, none stands still."""
    told = [(rank[f"talks {when}"]["error"], rank[f"talks {when}"]["refused"]) for rank in ranks]
    assert told == [("OutOfMemoryError", ["its forward pass talks to other ranks by itself"])] * 2
