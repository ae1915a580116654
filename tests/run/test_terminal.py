"""On a terminal everything feels as without us: colours, size, prompts, Ctrl-C, Ctrl-Z."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

import psutil

from tests.workplace import HOLDFAST, Workplace, wait_for


class OnTerminal:
    """Holdfast as the foreground job of a terminal of its own."""

    def __init__(self, workplace: Workplace, command: list[str], redirect: str = "") -> None:
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(workplace.path)
            words = [*HOLDFAST, "run", *command]
            if redirect:
                os.execvp("bash", ["bash", "-c", f'exec "$@" {redirect}', "bash", *words])
            os.execvp(words[0], words)
        self.seen = b""

    def type(self, data: bytes) -> None:
        os.write(self.master, data)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait_to_see(self, text: bytes, seconds: float = 20.0) -> bytes:
        until = time.monotonic() + seconds
        while text not in self.seen and time.monotonic() < until:
            self._read(0.2)
        assert text in self.seen, self.seen
        before, _, self.seen = self.seen.partition(text)
        return before

    def _read(self, seconds: float) -> None:
        if select.select([self.master], [], [], seconds)[0]:
            with contextlib.suppress(OSError):
                self.seen += os.read(self.master, 65536)

    def end(self) -> int:
        """The exit code, with all output read."""
        until = time.monotonic() + 30
        while time.monotonic() < until:
            self._read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._read(0.05)
                os.close(self.master)
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        raise AssertionError(f"did not end: {self.seen!r}")


def test_the_script_sees_a_terminal_of_the_right_size(workplace: Workplace) -> None:
    command = workplace.script("""
        import os, sys, signal
        print([os.isatty(fd) for fd in (0, 1, 2)], tuple(os.get_terminal_size()))
        signal.signal(signal.SIGWINCH, lambda *_: (print("now", tuple(os.get_terminal_size())), sys.exit()))
        print("ready")
        while True: signal.pause()
    """)
    terminal = OnTerminal(workplace, command)
    terminal.wait_to_see(b"ready")
    terminal.resize(33, 121)
    terminal.wait_to_see(b"now (121, 33)")
    assert terminal.end() == 0


def test_a_prompt_is_answered_and_colours_pass(workplace: Workplace) -> None:
    command = workplace.script(r"""print("\x1b[31mred\x1b[0m"); print("you said", input("name? "))""")
    terminal = OnTerminal(workplace, command)
    assert b"\x1b[31mred\x1b[0m" in terminal.wait_to_see(b"name? ")
    terminal.type(b"ada\r")
    terminal.wait_to_see(b"you said ada")
    assert terminal.end() == 0


def test_ctrl_c_interrupts_the_script_once(workplace: Workplace) -> None:
    command = workplace.script("""
        import time, sys
        count = 0
        print("ready", flush=True)
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            try: time.sleep(0.05)
            except KeyboardInterrupt: count += 1; until = min(until, time.monotonic() + 0.7)
        print("interrupts", count)
    """)
    terminal = OnTerminal(workplace, command)
    terminal.wait_to_see(b"ready")
    terminal.type(b"\x03")
    terminal.wait_to_see(b"interrupts 1")
    assert terminal.end() == 0


def test_ctrl_c_reaches_a_script_whose_output_goes_to_a_file(workplace: Workplace) -> None:
    command = workplace.script("import time; print('ready', flush=True); time.sleep(60)")
    terminal = OnTerminal(workplace, command, redirect="> log 2>&1")
    wait_for(lambda: (workplace.path / "log").exists() and b"ready" in (workplace.path / "log").read_bytes())
    terminal.type(b"\x03")
    assert terminal.end() == 130
    assert workplace.why()["cause"]["id"] == "interrupted"


def test_ctrl_z_stops_job_and_holdfast_and_they_go_on_together(workplace: Workplace) -> None:
    command = workplace.script("""
        import time
        print("ready", flush=True)
        begun = time.monotonic(); gap = 0; last = begun
        while time.monotonic() - begun < 4:
            time.sleep(0.02); now = time.monotonic(); gap = max(gap, now - last); last = now
            if gap > 0.5: break
        print("gap", gap > 0.5)
    """)
    terminal = OnTerminal(workplace, command)
    terminal.wait_to_see(b"ready")
    script = workplace.script_of(terminal.pid)
    terminal.type(b"\x1a")
    _, status = os.waitpid(terminal.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    wait_for(lambda: script.status() == psutil.STATUS_STOPPED)
    time.sleep(0.7)
    os.kill(terminal.pid, signal.SIGCONT)
    terminal.wait_to_see(b"gap True")
    assert terminal.end() == 0


def test_the_terminal_is_as_before_when_the_run_is_over(workplace: Workplace) -> None:
    """The slave is held open, since its modes are gone with its last descriptor."""
    master, slave = pty.openpty()
    former = termios.tcgetattr(slave)
    process = workplace.start(["sleep", "0.5"], stdin=slave, stdout=slave, stderr=slave)
    wait_for(lambda: termios.tcgetattr(slave) != former)
    process.wait(20)
    assert termios.tcgetattr(slave) == former
    os.close(master)
    os.close(slave)


def test_a_closed_terminal_is_named(workplace: Workplace) -> None:
    command = workplace.script("import time; print('ready', flush=True); time.sleep(60)")
    terminal = OnTerminal(workplace, command)
    terminal.wait_to_see(b"ready")
    os.close(terminal.master)
    wait_for(lambda: psutil.Process(terminal.pid).status() == psutil.STATUS_ZOMBIE)
    assert os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1]) == 129
    assert workplace.why()["cause"]["id"] == "terminal-closed"
