"""The script's output, input and exit code are its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workplace import HOLDFAST, PATIENCE_S, Workplace


def test_stdout_and_stderr_stay_apart_and_the_exit_code_is_kept(workplace: Workplace) -> None:
    command = workplace.script("import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)")
    done = workplace.run(command)
    assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"err\n", 7)


def test_a_signal_becomes_128_plus_its_number(workplace: Workplace) -> None:
    done = workplace.run(workplace.script("import os, signal; os.kill(os.getpid(), signal.SIGUSR1)"))
    assert done.returncode == 128 + 10


def test_standard_input_reaches_the_script(workplace: Workplace) -> None:
    command = workplace.script("import sys; print(sum(int(line) for line in sys.stdin))")
    assert workplace.run(command, input=b"20\n22\n").stdout == b"42\n"


def test_output_arrives_as_it_is_printed(workplace: Workplace) -> None:
    """It goes on only once its line was seen."""
    command = workplace.script(
        "import os, time; print('now', flush=True)\nwhile not os.path.exists('seen'): time.sleep(.01)"
    )
    process = workplace.start(command)
    assert process.stdout is not None
    assert process.stdout.readline() == b"now\n"
    (workplace.path / "seen").touch()
    assert process.wait(PATIENCE_S) == 0


def test_arbitrary_bytes_pass_unchanged(workplace: Workplace) -> None:
    blob = os.urandom(300_000)
    (workplace.path / "blob").write_bytes(blob)
    assert workplace.run(["cat", "blob"]).stdout == blob


def test_one_line_of_100_mb_passes_whole(workplace: Workplace) -> None:
    command = workplace.script("import sys; sys.stdout.write('x' * 100_000_000 + '\\n')")
    counted = subprocess.run(
        f"{' '.join([*HOLDFAST, 'run', *command])} | wc -c",
        shell=True, cwd=workplace.path, capture_output=True, check=True,
    )  # fmt: skip
    assert int(counted.stdout) == 100_000_001


def test_a_reader_that_leaves_is_seen_by_the_script(workplace: Workplace) -> None:
    """As without us: `yes | head -1` ends, because `yes` may not write any more."""
    done = subprocess.run(
        f"{' '.join(HOLDFAST)} run yes | head -1; echo ${{PIPESTATUS[0]}}",
        shell=True, executable="/bin/bash", cwd=workplace.path, capture_output=True, timeout=PATIENCE_S, check=True,
    )  # fmt: skip
    assert done.stdout == b"y\n141\n"


def test_everything_printed_right_before_the_end_is_passed_on(workplace: Workplace) -> None:
    command = workplace.script("import os; os.write(1, b'z' * 900_000); os.kill(os.getpid(), 9)")
    done = workplace.run(command)
    assert (len(done.stdout), done.returncode) == (900_000, 137)


def test_the_environment_and_descriptors_are_the_users(workplace: Workplace) -> None:
    command = workplace.script("""
        import os, signal
        print(os.environ["MINE"], os.getcwd() == os.environ["HERE"], os.read(int(os.environ["FD"]), 4).decode())
        print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
        print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
        print(open("/proc/self/oom_score_adj").read().strip())
    """)
    read_end, write_end = os.pipe()
    os.write(write_end, b"word")
    environment = {**os.environ, "MINE": "kept", "HERE": str(workplace.path), "FD": str(read_end)}
    score = Path("/proc/self/oom_score_adj").read_text().strip()
    done = workplace.run(command, env=environment, pass_fds=[read_end])
    os.close(read_end)
    os.close(write_end)
    assert done.stdout.decode().split("\n")[:4] == ["kept True word", "True", "[]", score]


def test_nothing_of_holdfast_is_on_the_output_of_a_healthy_run(workplace: Workplace) -> None:
    done = workplace.run(["true"])
    assert (done.stdout, done.stderr, done.returncode) == (b"", b"", 0)


@pytest.mark.parametrize("option", [["--policy", "observe"], ["--policy", "advise"], ["--memory", "2G"], []])
def test_every_policy_runs_the_script(workplace: Workplace, option: list[str]) -> None:
    assert workplace.run([sys.executable, "-c", "print(1)"], *option).stdout == b"1\n"
