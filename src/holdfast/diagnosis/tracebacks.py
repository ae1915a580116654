"""Python tracebacks, IPython's, and faulthandler dumps, as structure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.diagnosis.plain_text import is_progress
from holdfast.inside.library_paths import is_library
from holdfast.stack_dumps import Frame, current_frames

START = re.compile(
    r"^(?:\s{0,8}|.{0,120}[\s`'\"(])(?P<original>Original |Exception Group )?Traceback \(most recent call last\):?\s*$"
)
SYNTAX = re.compile(r"^(?:SyntaxError|IndentationError|TabError): ")
GROUP_MARGIN = re.compile(r"^ *[|+](?:-+ (?:\d+|\.\.\.) -+)?(?: |$)")
FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:,? in (?P<function>.+))?$')
CELL = re.compile(
    r"^(?:File )?(?P<file>(?:~|\.{0,2}/|[A-Za-z]:\\|<ipython-input|(?:lib|site-packages|dist-packages)/)[^\s:]*|(?:Cell|Input) In ?\[\d+\])"
    r"(?:(?::(?P<line>\d+))?,?(?: line (?P<line2>\d+))?(?: in (?P<function>[\w.<>]+).*)?)$"
)
ARROW = re.compile(r"^-{1,5}> ?(?P<line>\d+) ?(?P<code>.*)$")
RAISED = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*)|:?\s*)$")
# An exception that stands alone, as people paste it: its name must tell.
ALONE = re.compile(
    r"^(?:\s{0,8}|\S{0,3} ?|UnfilteredStackTrace: |[A-Za-z_]\w{0,40}(?:\.\w{1,40}){1,6}: )"
    r"(?P<type>(?:[A-Za-z_]\w*\.)*(?:_?[A-Z]\w*(?:Error|Exception|Interrupt|Iteration|Timeout|OutOfMemory)"
    r"|BadZipFile|ArrowInvalid|OutOfResources|BrokenProcessPool|TimeoutExpired|(?<=\.)(?:[Ee]rror|timeout|gaierror)))"
    r"(?: \(see above for traceback\))? ?:(?: (?P<message>.*)|\s*)$"
)
LOGGED = re.compile(
    r"^(?:INFO|WARNING|ERROR|CRITICAL):[\w.]{1,40}:(?:Error reported to Coordinator: <class '(?P<kind>[\w.]+)'>, (?P<said>.*)|(?P<rest>.*))$"
)
RICH_FRAME = re.compile(r"^(?P<file>(?:/|[A-Za-z]:\\)\S{1,300}\.py):(?P<line>\d+) in (?P<function>[\w<>.]+)\s*$")
RICH_CODE = re.compile(r"^ *❱ +(?P<line>\d+) (?P<code>.*)$")
OCCURRED = re.compile(r"^Exception has occurred: (?P<type>[A-Z]\w{2,60})\b")  # a debugger's window
ALONE_BARE = re.compile(r"^\s{0,8}(?P<type>MemoryError|KeyboardInterrupt|StopIteration)[`*]{0,3}\s*$")
LINKS = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
FATAL = re.compile(r"^Fatal Python error: (?P<reason>.+?)\s*$")
ANOTHER_VOICE = re.compile(
    r"^(?:slurmstepd|srun|wandb|Exception ignored in|Fatal Python error|Aborted|Segmentation fault|Killed|terminate called"
    r"|Root Cause|Process finished with|Error executing job|Exception in thread|\(raylet|(?:ERROR|WARNING|INFO)[ :]|[EWIF]\d{4} |=====|\*{8,}|\[[WEF]\d{3}|\d{4}-\d\d-\d\d .{8,16}: [IWEF] |Stack trace|Epoch \d|make: |The command \")"
)
CONTINUES = re.compile(
    r"^(?:\s|CUDA kernel|For debugging|Compile with|Device-side|\[\[|\d root error|\(\d\)|Detected at|$)"
)
RAISES = re.compile(r"raise (?P<type>[A-Z]\w{2,60}(?:Error|Exception))\((?:f|r)?[\"'](?P<message>[^\"']{8,300})")
NO_TRACEBACK = frozenset({"SyntaxError", "IndentationError", "TabError"})  # Python prints them without one
THROWN = re.compile(r"terminate called after throwing an instance of '(?P<type>[\w:.]{1,120})'")
WHAT = re.compile(r"^\s*what\(\): +(?P<message>.+)$")
FAILED_STATUS = re.compile(
    r"(?:OP_REQUIRES failed|[Ee]xecution (?:\w+ ){0,4}failed|failed to execute).{0,160}?: "
    r"(?P<code>(?i:resource[ _]exhausted|invalid[ _]argument|failed[ _]precondition|out[ _]of[ _]range|data[ _]loss|unimplemented)): (?P<message>.+)$"
)
NODE_MADE_AT = re.compile(r"^Detected at node \S{1,300} defined at \(most recent call last\):$")
GRAPH_NODE = re.compile(r"^\s*Node: '\S{1,300}'\s*$")
# What TensorFlow puts before its message: the node, and that some node failed.
NODE = re.compile(
    r"^\s*\{\{function_node [^}]*\}\}\s*(?:Error in user-defined function passed to .{0,200}?: (?=\w+\[))?"
)
SOME_NODE = re.compile(
    r"Graph execution error:?$|Detected at node |<stack traces unavailable>|File \"|\^+$|\[\[\{\{node "
)
MESSAGE_LINES = 60
BOX_LINES = 600
CELL_LINES = 9


@dataclass(frozen=True, slots=True)
class Raised:
    """One exception of a chain. `type` as printed, dotted or not; `last_line` is where its text ends."""

    type: str
    message: str
    frames: tuple[Frame, ...]
    last_line: int = 0
    whole: bool = True  # its traceback was there from the start
    start_line: int = 0

    @property
    def bare_type(self) -> str:
        return self.type.rpartition(".")[2]

    @property
    def first_line(self) -> str:
        said = [line.strip() for line in self.message.split("\n") if line.strip()]
        if said and said[0].startswith("in user code"):  # AutoGraph puts frames first and what happened last
            return next((line for line in reversed(said) if ALONE.match(line)), said[0])
        return said[0] if said else ""

    @property
    def telling_line(self) -> str:
        """What is shown of it."""
        if not self.message.startswith(("{{function_node", "Graph execution error")):
            return self.first_line
        lines = [NODE.sub("", line).strip() for line in self.message.splitlines()]
        return next((line for line in lines if line and not SOME_NODE.match(line)), self.first_line)


@dataclass(frozen=True, slots=True)
class FatalError:
    """What faulthandler prints when native code breaks; `frames` innermost first, of the thread that broke."""

    reason: str
    frames: tuple[Frame, ...]
    line: int = 0


def user_frame(frames: Sequence[Frame]) -> Frame | None:
    """The innermost frame that is the user's own; frames run from outermost to innermost."""
    return next((frame for frame in reversed(frames) if not is_library(frame.file)), None)


def last_chain(lines: Sequence[str]) -> list[Raised]:
    """The exceptions of the last chain printed with its traceback, the first raised first."""
    found = [chain for chain in chains(lines) if chain[-1].whole or chain[-1].bare_type in NO_TRACEBACK]
    return found[-1] if found else []


def chains(lines: Sequence[str]) -> list[list[Raised]]:
    """Every chain of exceptions, each with the first raised first."""
    lines = [GROUP_MARGIN.sub("", line) if line.lstrip()[:1] in ("|", "+") else line for line in lines]
    found: list[list[Raised]] = []
    i = nothing_until = 0
    while i < len(lines):
        start = START.match(lines[i]) if "Traceback" in lines[i] else None
        if start and start["original"] != "Original ":
            _dedent(lines, i)
            raised, after = _traceback(lines, i + 1)
            if raised is None:
                i += 1
                continue
            linked = any(line.strip() in LINKS for line in lines[max(0, i - 3) : i])
            raised = [replace(link, start_line=i) for link in raised]
            if found and (linked or (start["original"] is None and _in_group(lines, i))):
                found[-1] = [*found[-1], *raised]
            else:
                found.append(list(raised))
            i = after
        elif SYNTAX.match(lines[i]):
            found.append(_syntax_error(lines, i))
            i += 1
        elif i >= nothing_until and (FRAME.match(lines[i]) or ARROW.match(lines[i]) or _cell_above(lines, i)):
            headless, after = _headless(lines, i)
            found += [headless] if headless else []
            # Frames that lead to no exception are walked through once.
            nothing_until, i = (0, after) if headless else (after, i)
        elif RICH_FRAME.match(lines[i]) and (boxed := _boxed(lines, i)):
            found.append([boxed[0]])
            i = boxed[1]
        elif alone := _alone(lines, i):
            found.append([alone[0]])
            i = alone[1]
        else:
            i += 1
    return found


def _cell_above(lines: Sequence[str], i: int) -> bool:
    """IPython's place of a frame whose traceback's beginning was cut off: its code follows, with an arrow."""
    return CELL.match(lines[i]) is not None and any(ARROW.match(line) for line in lines[i + 1 : i + CELL_LINES])


def _dedent(lines: list[str], i: int) -> None:
    """People paste a traceback with an indent; what it holds is shifted back."""
    margin = len(lines[i]) - len(lines[i].lstrip(" "))
    if not margin or not lines[i].lstrip().startswith("Traceback"):
        return
    while i < len(lines) and (not lines[i].strip() or lines[i].startswith(" " * margin)):
        lines[i] = lines[i][margin:]
        i += 1


def _in_group(lines: Sequence[str], i: int) -> bool:
    """An exception of a group stands below the group's own line, parted by dashes that the margin took along."""
    return any(
        "unhandled errors in a TaskGroup" in line or "sub-exception" in line for line in lines[max(0, i - 3) : i]
    )


def _alone(lines: Sequence[str], i: int) -> tuple[Raised, int] | None:
    """The last line of a traceback whose rest is not there."""
    logged = LOGGED.match(lines[i])
    if logged and logged["kind"]:
        message, after = _message(lines, i + 1, logged["said"])
        return Raised(logged["kind"], message, (), i + message.count("\n"), whole=False, start_line=i), after
    if (occurred := OCCURRED.match(lines[i])) and i + 1 < len(lines):
        message, after = _message(lines, i + 2, lines[i + 1].strip())
        return Raised(occurred["type"], message, (), i + 1 + message.count("\n"), whole=False, start_line=i), after
    match = ALONE.match(logged["rest"] if logged else lines[i]) or ALONE_BARE.match(lines[i])
    if match is None or "ignored" in lines[i][:20]:
        return None
    message, after = _message(lines, i + 1, match.groupdict().get("message") or "")
    return Raised(match["type"], message, (), i + message.count("\n"), whole=False, start_line=i), after


def _boxed(lines: Sequence[str], i: int) -> tuple[Raised, int] | None:
    """Rich draws a box around the frames and says the exception below it."""
    start, frames = i, list[Frame]()
    while i < len(lines) and i < start + BOX_LINES:
        if place := RICH_FRAME.match(lines[i]):
            frames.append(Frame(place["file"], int(place["line"]), place["function"]))
        elif frames and (code := RICH_CODE.match(lines[i])):
            frames[-1] = replace(frames[-1], code=code["code"].replace("│", "").strip()[:200])
        elif alone := _alone(lines, i):
            return replace(alone[0], frames=tuple(frames), start_line=start, whole=True), alone[1]
        i += 1
    return None


def _headless(lines: Sequence[str], i: int) -> tuple[list[Raised], int]:
    """A traceback whose beginning was cut off, and where it ends; or where the search may go on."""
    raised, after = _traceback(lines, i)
    if raised is None or not ALONE.match(f"{raised[-1].type}: x"):
        return [], max(after, i + 1)
    return [replace(link, whole=False, start_line=i) for link in raised], after


def _syntax_error(lines: Sequence[str], i: int) -> list[Raised]:
    """It has no traceback where the script itself cannot be read: file, line and caret stand right above it."""
    kind, _, message = lines[i].partition(": ")
    above = next((found for line in lines[max(0, i - 4) : i] if (found := FRAME.match(line))), None)
    frames = (Frame(above["file"], int(above["line"]), above["function"] or ""),) if above else ()
    return [Raised(kind, message, frames, i, start_line=i)]


def _traceback(lines: Sequence[str], i: int) -> tuple[list[Raised] | None, int]:
    frames, i = _frames(lines, i)
    while i < len(lines) and not lines[i].strip():
        i += 1
    raised = RAISED.match(lines[i]) or ALONE.match(lines[i]) if i < len(lines) else None
    if frames and raised is None and (meant := RAISES.match(frames[-1].code)):
        # What it said was cut off; the line that raised it says it.
        return [Raised(meant["type"], meant["message"], tuple(frames), max(0, i - 1))], i
    if not frames or raised is None:
        return None, i
    message, after = _message(lines, i + 1, raised["message"] or "")
    inner: list[Raised] = []
    if after < len(lines) and lines[after].startswith("Original Traceback"):  # a worker's own, carried in the message
        found, after = _traceback(lines, after + 1)
        inner = found or []
    last_line = i + message.count("\n") if not inner else max(i, inner[-1].last_line)
    return [*_remote(message), *inner, Raised(raised["type"], message, tuple(frames), last_line)], after


def _remote(message: str) -> list[Raised]:
    """multiprocessing quotes the other process's traceback in three quotes."""
    if "Traceback (most recent call last)" not in message:
        return []
    found, _ = _traceback(message.strip('" \n').split("\n"), 1)
    return found or []


def _message(lines: Sequence[str], i: int, first: str) -> tuple[str, int]:
    """The rest of what an exception says, up to where another voice begins."""
    message = [first]
    blank = False
    of_a_node = 0  # lines of the frames that TensorFlow quotes of where a graph's node was made
    while i < len(lines) and len(message) - of_a_node < MESSAGE_LINES:
        line = lines[i]
        if line.strip() in LINKS or START.match(line) or ANOTHER_VOICE.match(line):
            break
        if NODE_MADE_AT.match(message[-1]) or (of_a_node and (line.startswith("  ") or not line.strip())):
            of_a_node += 1
            message.append(line)
            i += 1
            continue
        if blank and not CONTINUES.match(line) and (RAISED.match(line) or len(message) > 12):
            break
        if (ALONE.match(line) and not first.startswith("in user code")) or FRAME.match(line) or is_progress(line):
            break
        blank = not line.strip()
        message.append(line)
        i += 1
    return "\n".join(message).rstrip(), i


def _frames(lines: Sequence[str], i: int) -> tuple[list[Frame], int]:
    """Python's form, or IPython's: a place, then the lines around with an arrow at the one that ran."""
    frames: list[Frame] = []
    place: re.Match[str] | None = None
    while i < len(lines):
        line = lines[i]
        if match := FRAME.match(line):
            code = lines[i + 1].strip()[:200] if i + 1 < len(lines) and not FRAME.match(lines[i + 1]) else ""
            frames.append(Frame(match["file"], int(match["line"]), match["function"] or "", code))
        elif arrow := ARROW.match(line):
            file = place["file"] if place else "<cell>"
            frames.append(Frame(file, int(arrow["line"]), (place and place["function"]) or "", arrow["code"].strip()))
        elif cell := CELL.match(line):
            place = cell
        elif (place is None and _frames_end(lines, i, bool(frames))) or (place is not None and ALONE.match(line)):
            break
        i += 1
    return frames, i


def _frames_end(lines: Sequence[str], i: int, begun: bool) -> bool:
    line = lines[i]
    if line.strip():
        return not line.startswith(" ")
    return begun and i + 1 < len(lines) and not lines[i + 1].startswith(" ")


def native_errors(lines: Sequence[str]) -> list[Raised]:
    """Errors of native code that no Python exception carries: what C++ ended with, and an operation of a graph that failed."""
    found = []
    for i, line in enumerate(lines):
        if thrown := THROWN.search(line):
            what = next((said for said in map(WHAT.match, lines[i + 1 : i + 4]) if said), None)
            found.append(Raised(thrown["type"], what["message"] if what else "", (), i, whole=False, start_line=i))
        elif failed := FAILED_STATUS.search(line):
            kind = "".join(word.capitalize() for word in re.split(r"[ _]", failed["code"])) + "Error"
            found.append(Raised(kind, failed["message"], (), i, whole=False, start_line=i))
        elif GRAPH_NODE.match(line) and any("[[{{node" in below for below in lines[i + 2 : i + 6]):
            found.append(Raised("InvalidArgumentError", lines[i + 1].strip(), (), i + 1, whole=False, start_line=i))
    return found


def last_fatal(lines: Sequence[str]) -> FatalError | None:
    starts = [i for i, line in enumerate(lines) if FATAL.match(line)]
    if not starts:
        return None
    match = FATAL.match(lines[starts[-1]])
    assert match is not None
    return FatalError(match["reason"], current_frames(lines[starts[-1] + 1 :]), starts[-1])
