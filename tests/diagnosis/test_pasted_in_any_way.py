"""However a text was copied, quoted, wrapped or saved, it says the same."""

from __future__ import annotations

import html
import io
import json
import re
import textwrap
from collections.abc import Callable

import pytest

from holdfast.diagnosis.characters import decoded
from holdfast.diagnosis.plain_text import read_lines
from holdfast.diagnosis.reading.scan import CHUNK, excerpt
from holdfast.diagnosis.verdict import diagnose_log

TRACEBACK = """Traceback (most recent call last):
  File "C:\\nlp\\new\\fit.py", line 12, in <module>
    main()
  File "C:\\nlp\\new\\fit.py", line 7, in main
    loss = criterion(model(batch), labels)
"""
TEXTS = {
    TRACEBACK + "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x20 and 30x5)": "shape-mismatch",
    TRACEBACK + "MemoryError": "host-memory-exhausted",
    TRACEBACK + "AttributeError: module 'numpy' has no attribute 'float'": "api-incompatible",
    "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 31.75 GiB total capacity; 612.33 MiB already "
    "allocated; 14.75 MiB free; 622.00 MiB reserved in total by PyTorch)": "gpu-memory-held-by-others",
    "ValueError: Input 0 of layer \"dense\" is incompatible with the layer: expected axis -1 of input shape to have value "
    "784, but received input with shape (None, 28)": "shape-mismatch",
    "AttributeError: Can't pickle local object 'load.<locals>.<lambda>'": "unpicklable-worker-object",
}  # fmt: skip

Way = Callable[[str], str | bytes]


def _before_each(margin: str) -> Way:
    return lambda text: "\n".join(margin + line for line in text.split("\n"))


def _curly(text: str) -> str:
    return re.sub(r"(^|[\s(\[])'", r"\1‘", re.sub(r'(^|[\s(\[])"', r"\1“", text)).replace("'", "’").replace('"', "”")


def _in_columns(text: str) -> str:
    return "\n".join("\n".join(line[i : i + 80] for i in range(0, len(line) or 1, 80)) for line in text.split("\n"))


def _by_words(text: str) -> str:
    return "\n".join(textwrap.fill(line, 80) if len(line) > 80 else line for line in text.split("\n"))


WAYS: dict[str, Way] = {
    **{
        f"behind {margin!r}": _before_each(margin)
        for margin in (
            "[rank0]: ", "(train pid=812) ", "(pid=812) ", "[pod/trainer-0/main] ", "trainer-1  | ", "trainer | ",
            "2024-05-01 12:00:00,123 ", "2024-05-01 12:00:00,123 - fit - ERROR - ", "[12:00:00] ", "12:00:00 ",
            "[05/01 12:00:00] ", "2023-04-29T06:01:12.9770000Z ", "ERROR:root:", "stderr: ", "E       ", "| ",
            "> ", ">", "> > ", "  ", "        ", "\t",
        )
    },
    "numbered": lambda text: "\n".join(f"{i:4} {line}" for i, line in enumerate(text.split("\n"), 118)),
    "numbered in brackets": lambda text: "\n".join(f"[{i}] {line}" for i, line in enumerate(text.split("\n"), 1830)),
    "in a fence, with a question": lambda text: f"I get the following error:\n\n```\n{text}\n```\n\nHow can I solve it?",
    "quoted in an answer": lambda text: f"Same here:\n\n{_before_each('> ')(text)!s}\n\nDid you solve it?",
    "in a sentence": lambda text: f"I get `{text}` when I train",
    "bold": lambda text: f"**{text}**",
    "as HTML": lambda text: f"<pre><code>{html.escape(text)}</code></pre>",
    "with entities": lambda text: html.escape(text).replace("  ", "&nbsp; "),
    "with <br>": lambda text: "<br>\n".join(html.escape(line) for line in text.split("\n")),
    "in 80 columns": _in_columns,
    "in 80 columns, by words": _by_words,
    "on one line": lambda text: " ".join(line.strip() for line in text.split("\n")),
    "as a Python string": repr,
    "as a JSON string": json.dumps,
    "by a JSON logger": lambda text: "\n".join(json.dumps({"level": "error", "msg": line}) for line in text.split("\n")),
    "with Windows' line ends": lambda text: text.replace("\n", "\r\n"),
    "with an old Mac's line ends": lambda text: text.replace("\n", "\r"),
    "with two line ends": lambda text: text.replace("\n", "\n\n"),
    "without indentation": lambda text: "\n".join(line.lstrip() for line in text.split("\n")),
    "with spaces that do not break": lambda text: text.replace(" ", "\u00a0"),
    "with curly quotes": _curly,
    "with curly quotes of Windows' code page": lambda text: _curly(text).encode("cp1252"),
    "with curly quotes read in the wrong code page": lambda text: _curly(text).encode().decode("cp1252", "replace"),
    "by PowerShell": lambda text: text.replace("\n", "\r\n").encode("utf-16"),
    "by Notepad": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "in red": lambda text: "\n".join(f"\x1b[31m{line}\x1b[0m" for line in text.split("\n")),
    "in red without the escapes": lambda text: "\n".join(f"[31m{line}[0m" for line in text.split("\n")),
    "padded": lambda text: "\n".join(line.ljust(160) for line in text.split("\n")),
    "below a run that went well": lambda text: f"$ python fit.py\nloss: 0.3\nDone.\n$ python fit.py --large\n{text}\n$",
}  # fmt: skip


def cause_of(text: str | bytes) -> str | None:
    output = text.encode() if isinstance(text, str) else text
    found = diagnose_log(excerpt(io.BytesIO(output))).cause
    return found.id if found else None


@pytest.mark.parametrize("way", WAYS)
def test_a_text_says_the_same_however_it_was_pasted(way: str) -> None:
    for text, named in TEXTS.items():
        assert cause_of(text) == named
        shown = WAYS[way](text)
        assert cause_of(shown) == named, shown


@pytest.mark.parametrize("way", WAYS)
def test_a_healthy_log_says_nothing_however_it_was_pasted(way: str) -> None:
    epochs = [f"Epoch {i}/4 - loss: {1 / i:.4f} - accuracy: {0.5 + i / 10:.4f}" for i in range(1, 5)]
    healthy = "\n".join(["Using device: cuda:0", *epochs, "Saved to C:\\new\\net\\best.pt", "Finished, 0 errors."])
    assert cause_of(WAYS[way](healthy)) is None


def test_rows_of_one_length_are_rows_and_no_broken_line() -> None:
    rows = [f"step {i:03} | loss {1 / i:.4f} | grad norm {2 / i:.4f} | lr 1.0e-04 | data 0.01 s" for i in range(1, 9)]
    assert [line.text for line in read_lines("\n".join(rows).encode())] == rows


def test_a_path_of_windows_is_not_split_at_its_backslash_n() -> None:
    line = 'File "C:\\new\\nets\\name.py", line 3, in fit'
    assert [read.text for read in read_lines(line.encode())] == [line]


def test_who_said_it_is_kept_where_an_unknown_margin_is_taken_off() -> None:
    said = [f"[rank1]: worker#{i}; {line}" for i, line in enumerate((TRACEBACK + "MemoryError").split("\n"))]
    lines = read_lines("\n".join(said).encode())
    assert {line.who for line in lines} == {"rank1"}
    assert lines[0].text.startswith("Traceback") and lines[-1].text == "MemoryError"


def test_a_large_log_of_powershell_is_searched_like_any_other() -> None:
    output = ("step done\r\n" * (CHUNK // 11) + "RuntimeError: CUDA out of memory.\r\n").encode("utf-16")
    assert cause_of(output) == "gpu-memory-exhausted"


def test_what_cannot_be_read_stays_a_mark() -> None:
    assert decoded(b"a \xff\xfe b") == "a \ufffd\ufffd b"


def test_a_line_of_escapes_does_not_become_a_book() -> None:
    line = "\\n  File " * 3000
    assert len(read_lines("\n".join([line] * 20).encode())) == 20


def test_a_traceback_without_its_last_line_is_read_by_where_it_stood() -> None:
    place = 'File "/opt/lib/python3.9/multiprocessing/{}.py", line 134, in run\n    {}'
    assert cause_of(place.format("spawn", "_check_not_importing_main()")) == "worker-spawn-unguarded"
    assert (
        cause_of(place.format("reduction", "ForkingPickler(file, protocol).dump(obj)")) == "unpicklable-worker-object"
    )
    assert cause_of(place.format("pool", "worker.join()")) is None  # a call that may fail with anything
    assert cause_of(place.format("spawn", "_check_not_importing_main()") + "\nValueError: 3") == "unhandled-exception"


def test_in_a_container_the_process_that_holds_the_card_is_the_run_itself() -> None:
    said = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 500.00 MiB. GPU 0 has a total capacity of 16.00 GiB of "
        "which 400.00 MiB is free. Process {} memory in use. Of the allocated memory {} is allocated by PyTorch, and "
        "700.00 MiB is reserved by PyTorch but unallocated."
    )
    assert cause_of(said.format("812 has 15.50 GiB", "14.00 GiB")) == "gpu-memory-exhausted"
    assert cause_of(said.format("812 has 13.50 GiB", "1.20 GiB")) == "gpu-memory-held-by-others"


def test_an_exception_is_heard_in_the_middle_of_a_sentence_but_not_where_it_was_dealt_with() -> None:
    said = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x20 and 30x5)"
    assert cause_of(f"When I start it, I always see {said} and nothing else") == "shape-mismatch"
    assert cause_of(f"- fixed {said}\n- faster loading\n") is None
    assert cause_of(f"trial 1: caught {said}, retrying with another width\ntrial 1: val_loss 0.3\n") is None


def test_a_search_whose_trial_failed_and_that_went_on_is_healthy() -> None:
    failed = "Trial 1 failed because of the following error: OutOfMemoryError('CUDA out of memory').\n"
    assert cause_of(failed) == "gpu-memory-exhausted"
    assert cause_of(f"Trial 0 finished with value 0.81\n{failed}Trial 2 finished with value 0.84\n") is None
