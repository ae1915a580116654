"""A traceback whose last line was not pasted: where it stood says what such a call most often fails with."""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.diagnosis.plain_text import Line
from holdfast.diagnosis.reading.quoting import short
from holdfast.diagnosis.tracebacks import FRAME
from holdfast.vocabulary import Evidence, Finding

# Where the last frame was, and how often it was that.
FAILS_WITH = (
    (r"_check_not_importing_main\(", "worker-spawn-unguarded", 0.85),
    (r"ForkingPickler\(\w+, protocol\)\.dump", "unpicklable-worker-object", 0.62),
    (r"_error_if_any_worker_fails\(|_try_get_(?:data|batch)\b", "worker-died", 0.62),
    (r"torch\.embedding\(|tok(?:en)?_?emb\w*\(|word_emb\w*\(|\bin embedding\b", "index-out-of-range", 0.56),
    (r"torch\._C\._cuda_init\(", "gpu-driver-too-old", 0.52),
    (r"\bload_state_dict\b.*error_msgs|\.load_state_dict\(", "checkpoint-mismatch", 0.58),
    (r"\bTCPStore\(", "port-in-use", 0.52),
    (r"_check_seekable\(|_open_zipfile_reader\(|PyTorchFileReader\(", "corrupt-file", 0.55),
    (r"load_dynamic\(name, filename|_pywrap_tensorflow_internal = swig", "cuda-library-missing", 0.55),
    (r"F\.linear\(|torch\._C\._nn\.linear\(|torch\.addmm\(", "shape-mismatch", 0.55),
)
LAST = 3  # lines in which a frame and its code stand


def of_the_last_frame(lines: Sequence[Line]) -> list[Finding]:
    said = [line.text for line in lines if line.text.strip() and not line.text.strip().startswith(("```", "^", "~"))]
    places = [i for i, text in enumerate(said[-LAST:]) if FRAME.match(text)]
    if not places or places[-1] < len(said[-LAST:]) - 2:
        return []  # something stands below it
    last = " ".join(said[-LAST:][places[-1] :])
    return [
        Finding(cause, sure, (Evidence(short(last.strip()), "stderr"),))
        for words, cause, sure in FAILS_WITH
        if re.search(words, last)
    ][:1]
