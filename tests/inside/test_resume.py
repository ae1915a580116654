"""Killed or asked to go, a fit goes on at its batch; what does not match is not trained over."""

from __future__ import annotations

import signal
import subprocess
import textwrap
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from holdfast.inside import checkpoint_store
from holdfast.inside.ring import Reader
from tests.crash.resume import KERAS_JAX_KINDS, LOOP_KINDS, SEEDED, UNSEEDED, trial
from tests.inside.attempts import Attempt, Run
from tests.workplace import wait_for

pytestmark = pytest.mark.skipif(find_spec("keras") is None, reason="needs Keras and TensorFlow")

QUICK = ("arrays", "keras_jax_arrays", "torch_flat")  # torch_flat: kept by `holdfast.keep`


@pytest.mark.parametrize(
    "kind",
    [
        k if k in QUICK else pytest.param(k, marks=pytest.mark.slow)
        for k in (*SEEDED, *UNSEEDED, *LOOP_KINDS, *KERAS_JAX_KINDS)
    ],
)
def test_a_killed_fit_ends_with_the_weights_it_would_have_had(kind: str, tmp_path: Path) -> None:
    outcome = trial(kind, seed=1, kills=1, aim="saved", place=tmp_path, slack_s=3.0)  # the machine may be busy
    assert not outcome.problems and outcome.went_on == 1, outcome


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_kill_inside_the_save_leaves_the_one_before(seed: int, tmp_path: Path) -> None:
    outcome = trial("arrays", seed, kills=2, aim="save", place=tmp_path)
    assert not outcome.problems, outcome


SCRIPT = """
import os, signal, sys, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras, numpy as np
keras.utils.set_random_seed(3)
keras.config.disable_interactive_logging()
WIDTH, ROWS, SEED = int(os.environ.get("WIDTH", 8)), int(os.environ.get("ROWS", 640)), int(os.environ.get("SEED", 1))
chance = np.random.default_rng(SEED)
x, y = chance.normal(size=(ROWS, 4)).astype("float32"), chance.normal(size=(ROWS, 1)).astype("float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(WIDTH), keras.layers.Dense(1)])
model.compile("adam", "mse")
if os.environ.get("HANDLER"):
    def mine(number, frame):
        print("mine", flush=True)
        sys.exit(7)
    before = signal.signal(signal.SIGTERM, mine)
    assert before is signal.SIG_DFL and signal.getsignal(signal.SIGTERM) is mine
class Pace(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if not os.path.exists("training"):
            open("training", "w").close()
        time.sleep(0.005)
model.fit(x, y, batch_size=16, epochs=int(os.environ.get("EPOCHS", 200)), callbacks=[Pace()], verbose=0)
print("ended")
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    (tmp_path / "train.py").write_text(textwrap.dedent(SCRIPT))
    return Run(tmp_path, ["train.py"], interval_s=600.0)


def saved(run: Run) -> dict[str, object]:
    found: dict[str, object] = wait_for(lambda: checkpoint_store.newest(str(run.checkpoints)))
    return found


def ask(attempt: Attempt) -> None:
    (ring,) = attempt.channel.glob("*.ring")
    Reader(str(ring)).send({"do": "checkpoint", "id": 5})


def killed_with_a_checkpoint(run: Run, **env: str) -> None:
    attempt = run.start(**env)
    assert attempt.wait_for_training()
    ask(attempt)
    saved(run)
    wait_for(lambda: attempt.events("command.done"))
    attempt.kill()
    (answer,) = attempt.events("command.done")
    assert (answer["id"], answer["do"], answer["result"]) == (5, "checkpoint", "saved")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param({"WIDTH": "9"}, "kernel (4, 9)", id="model"),
        pytest.param({"ROWS": "320"}, "20 batches", id="length", marks=pytest.mark.slow),
        pytest.param({"SEED": "2"}, "the data itself", id="content", marks=pytest.mark.slow),
    ],
)
def test_a_checkpoint_asked_for_is_on_disk_when_answered_and_another_script_is_told_so(
    run: Run, change: dict[str, str], said: str
) -> None:
    killed_with_a_checkpoint(run)
    before = saved(run)
    other = run.start(**change)
    assert other.finish() == 2
    assert said in other.events("checkpoint.mismatch")[0]["reason"]
    assert said in other.err
    assert "Traceback" not in other.err
    assert not other.steps(), "nothing was trained"
    assert saved(run) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGUSR1, marks=pytest.mark.slow)])
def test_a_scheduler_that_takes_the_machine_gets_143_and_the_run_goes_on_where_it_was(
    run: Run, number: signal.Signals
) -> None:
    first = run.start()
    assert first.wait_for_training()
    time.sleep(0.4)
    first.process.send_signal(number)
    assert first.finish() == -signal.SIGTERM
    last = first.steps()[-1][1]
    assert saved(run)["step"] == last, "nothing is lost"
    second = run.start(EPOCHS="12")
    assert second.finish() == 0
    assert second.events("checkpoint.restored")[0]["step"] == last
    assert second.out.endswith("ended\n")


@pytest.mark.slow
def test_a_handler_of_the_users_runs_after_the_save(run: Run) -> None:
    attempt = run.start(HANDLER="1")
    assert attempt.wait_for_training()
    attempt.process.send_signal(signal.SIGTERM)
    assert attempt.finish() == 7
    assert "mine" in attempt.out
    assert saved(run)["step"] == attempt.steps()[-1][1]


@pytest.mark.root
@pytest.mark.alone
def test_a_full_disk_keeps_the_old_checkpoint_and_the_run_going(run: Run) -> None:
    run.checkpoints.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(run.checkpoints)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("cannot mount a small file system")
    try:
        run.interval_s = 0.3
        attempt = run.start(WIDTH="300000", EPOCHS="7")  # 21.6 MB of state: the second one finds no room
        assert attempt.finish() == 0, attempt.err
        assert len(attempt.events("checkpoint.saved")) == 1
        assert attempt.events("checkpoint.failed")
        assert saved(run)["number"] == 1
    finally:
        subprocess.run(["umount", "-l", str(run.checkpoints)], check=False)


@pytest.mark.slow
def test_without_a_word_about_checkpoints_nothing_is_kept(run: Run) -> None:
    attempt = run.start(keep=False, EPOCHS="2")
    assert attempt.finish() == 0
    assert not run.checkpoints.exists()
    assert not attempt.events("checkpoint.saved", "checkpoint.failed", "inside.failed")
