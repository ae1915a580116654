"""Runs commands on a terminal of 84 columns and draws what one sees: `python docs/picture.py OUT.svg COMMAND…`"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from io import StringIO

from rich.console import Console
from rich.text import Text

COLUMNS = 84


def seen(command: str) -> bytes:
    master, slave = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    process = subprocess.Popen(["bash", "-c", command], stdin=slave, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    output = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        output += piece
    process.wait()
    return output


def main(path: str, commands: list[str]) -> None:
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    for command in commands:
        console.print(Text(f"$ {command}", style="bold"))
        text = seen(command).decode("utf-8", "replace").replace("\r\n", "\n")
        lines = [line.rpartition("\r")[2] for line in text.rstrip("\n").split("\n")]
        console.print(Text.from_ansi("\n".join(lines)))
    console.save_svg(path, title="holdfast")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
