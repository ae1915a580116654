"""An exception that is nothing but itself: an error in the script, or in how it uses a library."""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.diagnosis.reading.quoting import details_of, not_there, quote, short
from holdfast.diagnosis.tracebacks import Raised, user_frame
from holdfast.vocabulary import Finding

# What Python itself raises for a slip in the code, wherever it is.
CERTAIN_SLIPS = frozenset(
    ("NameError", "UnboundLocalError", "SyntaxError", "IndentationError", "TabError", "ZeroDivisionError", "KeyError")
)
SLIPS = CERTAIN_SLIPS | {
    "AssertionError",
    "NotImplementedError",
    "AttributeError",
    "TypeError",
    "IndexError",
    "ValueError",
}
# Messages of libraries that tell of nothing but how they were called.
MISUSED = re.compile(
    r"No gradients provided for any variable|must compile your model before|backward through the graph a second time|does not require grad and does not have a grad_fn|only for scalar outputs"
    r"|No `\w{1,40}\(\)` method defined|conditioned on metric .{1,60} which is not available|needs PRNG for"
)
# What the interpreter itself says of a slip, whoever pasted it without its place.
INTERPRETER = re.compile(
    r"unsupported operand type|object is not (?:subscriptable|callable|iterable|an iterator)|(?:missing|takes) .{0,20}\d+ .{0,20}positional argument|can only concatenate"
    r"|(?:list|string|tuple) ind(?:ices must be|ex out of range)|not supported between instances|^'(?:list|dict|str|int|float|tuple|set|function|method|bool|builtin_function_or_method)' object has no attribute"
    r"|object does not support item assignment|local variable '|cannot unpack non-iterable|must be real number|unhashable type"
)
TRACERS = frozenset(
    ("ConcretizationTypeError", "TracerArrayConversionError", "TracerBoolConversionError", "TracerIntegerConversionError",
     "UnexpectedTracerError", "NonConcreteBooleanIndexError", "OperatorNotAllowedInGraphError")
)  # fmt: skip
# What is raised where a check found the symptom: whoever raised it, the reason lies elsewhere.
SYMPTOM = re.compile(
    r"\b(?:loss|gradients?|output|value|weights?)\b.{0,40}\b(?:nan|inf|infinite|non-?finite|not finite|diverged)\b|\b(?:nan|non-?finite)\b.{0,40}\b(?:loss|gradient|encountered)"
    r"|found invalid values|device-side assert|CUDA error: unknown error|exit code|non-zero exit status",
    re.IGNORECASE,
)
SLIPS |= {"UnicodeDecodeError", "UnicodeEncodeError", "RecursionError"}


def of_the_script(chain: Sequence[Raised], launched: bool) -> Finding:
    root = next((raised for raised in chain if user_frame(raised.frames)), chain[-1])
    headline = not_there(root) or f"The script raised {root.type}: {short(root.telling_line)}".rstrip(": ")
    confidence = 0.1 if launched else sure_of(root)
    return Finding("unhandled-exception", confidence, quote(root, chain), details_of(root, chain), headline=headline)


def sure_of(root: Raised) -> float:
    """How surely the script's own code is to be mended: a slip at its own line, or something deep in a library."""
    own = user_frame(root.frames)
    if SYMPTOM.search(root.first_line):
        return 0.35
    if root.bare_type in TRACERS or MISUSED.search(root.message):
        return 0.7
    if not root.frames:
        if root.bare_type in CERTAIN_SLIPS or INTERPRETER.search(root.message):
            return 0.55
        return 0.5 if root.bare_type in SLIPS else 0.45
    if own is not None and own == root.frames[-1]:
        return 0.88 if root.bare_type in CERTAIN_SLIPS else 0.78 if root.bare_type in SLIPS else 0.6
    return 0.58 if root.bare_type in SLIPS else 0.47
