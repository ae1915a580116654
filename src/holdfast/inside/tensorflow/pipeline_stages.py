"""What a tf.data pipeline does to each row, told when an iterator over it is made: which calls it is made of, and which of TensorFlow's
operations the functions in them use. It runs in native code, where no stack shows it."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterable, Iterator, List

from ..library_paths import is_library
from . import seams

STAGES = (
    ("read", re.compile(r"ReadFile|TFRecord|TextLine|FixedLengthRecord")),
    ("decode", re.compile(r"Decode|Parse(?:Example|SingleExample|Sequence|Tensor)|StringSplit|RegexReplace|Unicode|StringToNumber")),
    ("resize", re.compile(r"Resize|ScaleAndTranslate")),
    ("augment", re.compile(r"Random(?!Shuffle|Dataset)|ImageProjectiveTransform|Adjust(?:Contrast|Hue|Saturation)|HSV")),
    ("python", re.compile(r"PyFunc|GeneratorDataset")),
)  # fmt: skip
OPERATIONS = 12  # that are told of a call
CLASS = re.compile(r"^_?(?P<parallel>Parallel)?(?P<name>\w+?)(?:Dataset)?(?:V\d)?$")
WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


def stages_of(parts: Iterable[Any]) -> Dict[str, Any]:
    """`parts` from the last to the first. `calls`: those that do something to a row; `ahead`: batches are made before they are asked for."""
    calls: List[Dict[str, Any]] = []
    ahead = False
    for number, part in enumerate(parts):
        found = CLASS.match(type(part).__name__)
        name = WORD.sub("_", found["name"]).lower() if found is not None else ""
        ahead = ahead or (number < 2 and name == "prefetch")  # options may come after it
        used = sorted(set(_operations(part)) | {type(part).__name__.strip("_")})
        does = [stage for stage, pattern in STAGES if any(pattern.search(one) for one in used)]
        if does:
            known = [one for one in used if any(pattern.search(one) for _, pattern in STAGES)]
            parallel = seams.runs_in_parallel(part) or (found is not None and found["parallel"] is not None)
            name = "from_generator" if "GeneratorDataset" in used else name
            call = {"call": name, "does": does, "operations": known[:OPERATIONS], "parallel": parallel}
            calls.append({**call, **_function_of(part)})
    return {"calls": calls[::-1], "ahead": ahead}


def _operations(part: Any) -> Iterator[str]:
    for graph in seams.graphs_of(part):
        for operation in graph.get_operations():
            yield operation.type


def _function_of(part: Any) -> Dict[str, str]:
    """The script's own function that is called for each row, and where it is."""
    for function in seams.python_functions_of(part):
        code = getattr(function, "__code__", None)
        if code is not None and not is_library(code.co_filename):
            return {"function": code.co_name, "place": f"{code.co_filename}:{code.co_firstlineno}"}
    return {"function": "", "place": ""}
