"""What a run printed, read as a recorded run and as a pasted log, beside the verdict on the whole record.

    python -m tests.replay.both_ways FOLDER…     runs below these folders
    python -m tests.replay.both_ways --quick     the quick failing programs of the lab, recorded now

Exits with 1 where the same output is named differently, but for what is guessed of a text alone.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.causes import CAUSES
from holdfast.cli.recording import read_run
from holdfast.diagnosis.plain_text import read_lines
from holdfast.diagnosis.reading.log import clues_of
from holdfast.diagnosis.reading.ranking import findings_of, first_seen
from holdfast.diagnosis.reading.scan import excerpt
from holdfast.diagnosis.verdict import diagnose, diagnose_log
from holdfast.diagnosis.weighing import SURE, ranked
from holdfast.journal import Journal
from holdfast.recorded_events import Exit
from holdfast.vocabulary import Diagnosis, Event, Window

NOTHING = "-"


@dataclass(frozen=True)
class Verdicts:
    """Ids; `-` where nothing can be told."""

    name: str
    pasted: str
    without_usual: str  # pasted, and nothing guessed by what is usual: that a bare `Killed` was for memory, say
    recorded: str  # the same text with the exit, and no detector's word
    whole: str  # with all that was recorded

    @property
    def agree(self) -> bool:
        """What is usual counts only where nothing but the text is known, and what only slows a run ended none."""
        by_what_is_usual = self.pasted != self.without_usual
        slows = (
            self.pasted != NOTHING and CAUSES[self.pasted].slows and self.recorded in (NOTHING, "unhandled-exception")
        )
        return self.pasted == self.recorded or by_what_is_usual or slows


def as_pasted(output: dict[str, bytes]) -> str:
    return _id(diagnose_log(excerpt(io.BytesIO(b"\n".join(output.values())))))


def without_what_is_usual(output: dict[str, bytes]) -> str:
    lines = read_lines(b"\n".join(output.values()))
    clues = clues_of(lines)
    found = ranked(findings_of(clues, lines, only_the_text=False), first_seen(clues), only_text=True)
    return found[0].cause if found and found[0].confidence >= SURE else NOTHING


def as_recorded(output: dict[str, bytes], end: Event) -> str:
    """Without a detector's word."""
    return _id(diagnose(Window([end], {}, output), []))


def verdicts(run: Path) -> Verdicts | None:
    """None of a run that did not fail."""
    journal = Journal(run / "journal")
    ends = journal.events(Exit.KIND)
    if not ends or Exit.of(ends[-1]).code == 0:
        return None
    last = max((event.at for event in journal.events("attempt.start")), default=float("-inf"))
    output = journal.output(since=last)
    read = (as_pasted(output), without_what_is_usual(output), as_recorded(output, ends[-1]))
    return Verdicts(run.name, *read, _id(read_run(run).diagnosis))


def _id(answer: Diagnosis) -> str:
    return answer.cause.id if answer.cause is not None else NOTHING


def _runs_below(folders: list[Path]) -> Iterator[Path]:
    for folder in folders:
        yield from sorted(path.parent for path in folder.rglob("journal") if path.is_dir())


def _record_quick(folder: Path) -> None:
    from lab import program
    from lab.case import load_all

    tempfile.tempdir = str(folder)
    for case in load_all([]):
        if case.quick and case.has_fault:
            program.run(case, healthy=False, bare=False, keep=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        if options.quick:
            _record_quick(Path(place))
        found = [one for run in _runs_below([*options.folders, Path(place)]) if (one := verdicts(run)) is not None]
    print(f"{'run':24} {'pasted':28} {'recorded output':28} {'whole record':28}")
    for one in found:
        more = "" if one.whole == one.recorded else "  the record knows more"
        print(f"{one.name:24} {one.pasted:28} {one.recorded:28} {one.whole:28}{more if one.agree else '  DIFFER'}")
    same = sum(one.pasted == one.recorded for one in found)
    differing = sum(not one.agree for one in found)
    print(
        f"{len(found)} runs: {same} the same both ways, {len(found) - same - differing} but for what is usual, {differing} differ"
    )
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
