"""Lines as the program wrote them: split where their ends were lost, joined where a narrow window broke them."""

from __future__ import annotations

import re
from itertools import pairwise

# A path of Windows may have \\n in it.
ESCAPED = re.compile(r"(?:\\r)?\\n(?![\w-]{1,40}[\\/])")
SURELY_ESCAPED = re.compile(r"\\n(?:\s*File \\?\"|Traceback |\s{2,}|[\w.]{0,120}(?:Error|Exception)\b|\[?\d{4}-\d\d)")
ESCAPED_QUOTE = re.compile(r"\\(['\"])")
# Where a line of a traceback begins that was pasted in one piece.
BEGINNINGS = re.compile(
    r"(?<!\s)\s+(?=Traceback \(most recent call last\):)|(?<=last\):)\s+"
    r"|(?<!\s)\s+(?=File \"[^\"\n]{1,300}\", line \d)|(?<=>)\s+(?=[a-z_]\w{0,60}[(.= ])"
    r"|(?<!\s)\s+(?=(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{2,60}(?:Error|Exception): )"
    r"|(?<!\s)\s+(?=(?:MemoryError|KeyboardInterrupt|StopIteration)\W{0,4}$)"
)
MOST_LINES = 1500  # more than that is no text that somebody pasted
NARROWEST, WIDEST = 60, 250  # columns of a window
USUAL = frozenset({80, 100, 120, 132})
RECORD = re.compile(
    r"\s*(?:File \"|Traceback |\^|[-=*#+~_]{3,}|\d{4}-\d\d-\d\d|\d{1,2}:\d\d|[\[({<|│╭╰>$#*+-]|[IWEF]\d{4} |[A-Z]\w*(?:Error|Exception|Warning|Interrupt)\b"
    r"|(?:\w+\.){1,6}\w*(?:Error|Exception)\b|(?:INFO|WARN|WARNING|ERROR|DEBUG|CRITICAL|Epoch|Step|Iter|Aborted|Killed|Terminated|Segmentation|Bus error|Illegal"
    r"|terminate called|slurmstepd|srun|Process|During handling|The above|Fatal)\b|-{2,}>|\d+ )"
)
ENDED = ("|", "│", "+", "╮", "╯", "=", "-", "*", "\\")
DIGITS = re.compile(r"\d+")
ALIKE = 5  # characters at the start that two records of one kind share


def split_up(lines: list[str]) -> list[tuple[int, str]]:
    """Each line with the number of the one it came from."""
    found: list[tuple[int, str]] = []
    for number, line in enumerate(lines):
        parts = [line]
        if "\\n" in line and (SURELY_ESCAPED.search(line) or _one_piece(lines, line)):
            parts = [ESCAPED_QUOTE.sub(r"\1", part) for part in ESCAPED.split(line)]
        if any("Traceback (most recent call last):" in part and ' File "' in part for part in parts) or any(
            part.count('File "') > 1 for part in parts
        ):
            parts = [piece for part in parts for piece in _of_a_traceback(part)]
        found += [(number, part) for part in parts]
        if len(found) > MOST_LINES:
            return list(enumerate(lines))
    return found


def _one_piece(lines: list[str], line: str) -> bool:
    return len(lines) <= 2 and ":\\" not in line and len(ESCAPED.findall(line)) > 1


def _of_a_traceback(part: str) -> list[str]:
    pieces = [piece for piece in BEGINNINGS.split(part) if piece]
    return [f"  {piece}" if piece.startswith('File "') else piece for piece in pieces]


def joined(lines: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Words that were broken at a window's edge are put together again."""
    # A row that ends with one space was broken there; more of them fill a window up.
    rows = [line.rstrip() if line.endswith("  ") else line for _, line in lines]
    lengths = [len(row) for row in rows]
    width = max(lengths, default=0)
    if not NARROWEST <= width <= WIDEST or len(lines) < 2:
        return lines
    by_words = any(
        len(row) < width and _goes_on(row, row, line) and _had_no_room(row, line, width) for row, line in pairwise(rows)
    )
    hard = not by_words and (lengths.count(width) > 1 or width in USUAL)
    found: list[tuple[int, str]] = []
    ends_full = False
    last = ""  # the row before, as it was in the window
    for (number, _), line in zip(lines, rows, strict=True):
        if found and _goes_on(found[-1][1], last, line):
            if ends_full and hard and not (line[:1].isupper() and lengths.count(width) == 1):
                found[-1] = (found[-1][0], found[-1][1] + line)
            elif _had_no_room(last, line, width):
                found[-1] = (found[-1][0], f"{found[-1][1].rstrip()} {line.lstrip()}")
            else:
                found.append((number, line))
        else:
            found.append((number, line))
        ends_full, last = len(line) == width, line
    return found


def _goes_on(record: str, row: str, line: str) -> bool:
    if not line.strip() or not row.strip() or row.rstrip().endswith(ENDED) or RECORD.match(line):
        return False
    return _shape(line) != _shape(record) and _shape(line) != _shape(row)


def _shape(line: str) -> str:
    return DIGITS.sub("0", line.strip()[: 4 * ALIKE])[:ALIKE]


def _had_no_room(row: str, line: str, width: int) -> bool:
    """Whether a window of that width would have broken the row before the next one's first word."""
    word = line.split(maxsplit=1)[0]
    sentence_ended = row.endswith((".", "!", "?", ";")) and line[:1].isupper()
    return not line[:1].isspace() and not sentence_ended and len(row) <= width < len(row) + 1 + len(word)
