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

from tests.workplace import HOLDFAST, PATIENCE_S, Workplace, wait_for


class OnTerminal:
    """Holdfast as the foreground job of a terminal of its own."""

    def __init__(
        self, workplace: Workplace, command: list[str], redirect: str = "", program: list[str] | None = None
    ) -> None:
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(workplace.path)
            words = [*(program or [*HOLDFAST, "run"]), *command]
            if redirect:
                os.execvp("bash", ["bash", "-c", f'"$@" {redirect}', "bash", *words])
            os.execvp(words[0], words)
        self.seen = b""

    def type(self, data: bytes) -> None:
        os.write(self.master, data)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait_to_see(self, text: bytes) -> bytes:
        until = time.monotonic() + PATIENCE_S
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
        until = time.monotonic() + PATIENCE_S
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


def test_a_secret_is_asked_for_at_the_terminal_also_where_input_comes_from_a_file(workplace: Workplace) -> None:
    command = workplace.script("""
        import getpass, sys, time
        print("given", sys.stdin.read().strip())
        print("secret of", len(getpass.getpass("token: ")), flush=True)
        time.sleep(0.5)
        print("done")
    """)
    (workplace.path / "settings").write_text("deep\n")
    terminal = OnTerminal(workplace, command, redirect="< settings; stty -a | tr -s ' ;' '\\n' | grep -x -- '-\\?echo'")
    assert b"given deep\r\n" in terminal.wait_to_see(b"token: ")
    terminal.type(b"abcd\r")
    assert b"abcd" not in terminal.wait_to_see(b"secret of 4\r\n")
    terminal.type(b"seen")  # and from then on the keys are nobody's again
    assert b"seen" in terminal.wait_to_see(b"done\r\n")
    terminal.wait_to_see(b"echo\r\n")
    assert b"-" not in terminal.seen and terminal.end() == 0


def test_ctrl_c_leaves_a_prompt_for_a_secret(workplace: Workplace) -> None:
    terminal = OnTerminal(
        workplace, workplace.script("import getpass; getpass.getpass('token: ')"), redirect="< /dev/null"
    )
    terminal.wait_to_see(b"token: ")
    terminal.type(b"\x03")
    assert terminal.end() == 130


def test_ctrl_c_interrupts_the_script_once(workplace: Workplace) -> None:
    command = workplace.script("""
        import signal, time
        came = []
        signal.signal(signal.SIGINT, lambda *_: came.append(time.monotonic()))
        print("ready", flush=True)
        while not came or time.monotonic() < came[0] + 0.7: time.sleep(0.05)
        print("interrupts", len(came))
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


UNTIL_TOLD = """
    import os, time
    print("ready", os.getpid(), "!", flush=True)
    while not os.path.exists("enough"): time.sleep(0.02)
    print("ended")
"""


def stop_and_continue(shell: OnTerminal, workplace: Workplace) -> None:
    """Ctrl-Z stops the script of that name and brings the shell back, `fg` continues it."""
    shell.wait_to_see(b"ready ")
    script = psutil.Process(int(shell.wait_to_see(b" !\r\n")))
    shell.type(b"\x1a")
    shell.wait_to_see(b"Stopped")
    wait_for(lambda: script.status() == psutil.STATUS_STOPPED)
    shell.type(b"fg\r")
    wait_for(lambda: script.status() != psutil.STATUS_STOPPED)
    (workplace.path / "enough").touch()


def test_ctrl_z_stops_job_and_holdfast_and_fg_continues_them(workplace: Workplace) -> None:
    """In a shell with job control, as people have it."""
    words = " ".join([*HOLDFAST, "run", *workplace.script(UNTIL_TOLD)])
    shell = OnTerminal(workplace, ["--norc", "-i"], program=["env", "PS1=# ", "bash"])
    shell.type(f"{words}\r".encode())
    stop_and_continue(shell, workplace)
    shell.wait_to_see(b"ended")
    shell.wait_to_see(b"# ")
    shell.type(b"exit\r")
    assert shell.end() == 0


def test_ctrl_z_is_ignored_where_nobody_could_continue_the_job(workplace: Workplace) -> None:
    """As the kernel does in a session without a shell, of `ssh -t` or a container say."""
    terminal = OnTerminal(workplace, workplace.script(UNTIL_TOLD))
    terminal.wait_to_see(b"ready ")
    script = psutil.Process(int(terminal.wait_to_see(b" !")))
    terminal.type(b"\x1a")
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        assert script.status() != psutil.STATUS_STOPPED
        time.sleep(0.01)
    (workplace.path / "enough").touch()
    terminal.wait_to_see(b"ended")
    assert terminal.end() == 0


def test_a_background_job_reads_the_keyboard_once_it_is_in_front(workplace: Workplace) -> None:
    script = workplace.script("import time; print('ready', flush=True); time.sleep(1.5); print('read', input())")
    shell = OnTerminal(workplace, ["--norc", "-i"], program=["env", "PS1=# ", "bash"])
    shell.type(" ".join([*HOLDFAST, "run", *script, "&"]).encode() + b"\r")
    shell.wait_to_see(b"ready\r")
    shell.type(b"fg\r")
    time.sleep(1.5)
    shell.type(b"hello\r")
    shell.wait_to_see(b"read hello")
    shell.wait_to_see(b"# ")
    shell.type(b"exit\r")
    assert shell.end() == 0


def test_ctrl_c_works_after_the_script_has_let_go_of_the_terminal(workplace: Workplace) -> None:
    source = "echo ready; exec >log 2>&1 </dev/null; sleep 30"
    terminal = OnTerminal(workplace, ["sh", "-c", source])
    terminal.wait_to_see(b"ready")
    time.sleep(0.3)
    terminal.type(b"\x03")
    assert terminal.end() == 130


def test_a_long_paste_reaches_a_script_that_reads_late(workplace: Workplace) -> None:
    command = workplace.script("""
        import sys, time, tty
        tty.setraw(0)
        print("ready", flush=True); time.sleep(1)
        got = 0
        while got < 150_000: got += len(sys.stdin.buffer.read1(65536))
        print("got", got)
    """)
    terminal = OnTerminal(workplace, command)
    terminal.wait_to_see(b"ready")
    os.set_blocking(terminal.master, False)
    left = b"x" * 150_000
    until = time.monotonic() + PATIENCE_S
    while left and time.monotonic() < until:
        try:
            left = left[os.write(terminal.master, left) :]
        except BlockingIOError:
            terminal._read(0.05)
    os.set_blocking(terminal.master, True)
    terminal.wait_to_see(b"got 150000")
    assert terminal.end() == 0


def test_a_pager_downstream_keeps_the_keyboard(workplace: Workplace) -> None:
    """Where stdout is a pipe, its reader may want the keys: the terminal stays as it is."""
    command = workplace.script("import time; print('x', flush=True); time.sleep(1)")
    terminal = OnTerminal(workplace, command, redirect="| (sleep 0.5; stty -a < /dev/tty | grep -c -- -icanon; cat)")
    terminal.wait_to_see(b"0\r\n")
    assert terminal.end() == 0


def test_the_terminal_is_as_before_when_the_run_is_over(workplace: Workplace) -> None:
    """The slave is held open, since its modes are gone with its last descriptor."""
    master, slave = pty.openpty()
    former = termios.tcgetattr(slave)
    process = workplace.start(workplace.script(UNTIL_TOLD), stdin=slave, stdout=slave, stderr=slave)
    wait_for(lambda: termios.tcgetattr(slave) != former)
    (workplace.path / "enough").touch()
    process.wait(PATIENCE_S)
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
