"""A traceback whose last line was not pasted: where it stood says what such a call most often fails with."""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.causes import CAUSES
from holdfast.diagnosis.plain_text import Line
from holdfast.diagnosis.reading.quoting import short
from holdfast.diagnosis.tracebacks import FRAME
from holdfast.vocabulary import Evidence, Finding

# Where the last frame was, and how often it was that.
FAILS_WITH = [(words, record.id, sure) for record in CAUSES.values() for sure, words in record.last_frames]
LAST = 3  # lines in which a frame and its code stand


def of_the_last_frame(lines: Sequence[Line]) -> list[Finding]:
    said = [line.text for line in lines if line.text.strip() and not line.text.strip().startswith(("```", "^", "~"))]
    if said and said[-1].strip().startswith('File "') and not FRAME.match(said[-1]):
        said.pop()  # where the text was cut, in the middle of the next frame
    places = [i for i, text in enumerate(said[-LAST:]) if FRAME.match(text)]
    if not places or places[-1] < len(said[-LAST:]) - 2:
        return []  # something stands below it
    last = " ".join(said[-LAST:][places[-1] :])
    return [
        Finding(cause, sure, (Evidence(short(last.strip()), "stderr"),))
        for words, cause, sure in FAILS_WITH
        if re.search(words, last)
    ][:1]
