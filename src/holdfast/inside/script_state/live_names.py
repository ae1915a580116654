"""Which variables the code may still read before it writes them again: only those belong to a script's state.

By the bytecode, from the instruction a frame stands at. Too many names are harmless, too few are not: what an exception
handler reads counts as read from anywhere.
"""

from __future__ import annotations

import dis
from types import CodeType
from typing import Dict, Iterator, List, Set, Tuple

# By the ends of their names, which change from one Python to the next (LOAD_FAST_CHECK, LOAD_FAST_BORROW, …).
_LOADS = ("LOAD_FAST", "LOAD_DEREF", "LOAD_NAME", "LOAD_CLASSDEREF", "LOAD_GLOBAL")
_STORES = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL")
_ENDS = ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE")
_JUMPS_ALWAYS = ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP")
READS_ANY = {"locals", "globals", "vars", "eval", "exec", "dir"}  # variables by names that the code does not show


class _Step:
    __slots__ = ("follows", "reads", "writes")

    def __init__(self) -> None:
        self.reads: Set[str] = set()
        self.writes: Set[str] = set()
        self.follows: List[int] = []


def live_after(code: CodeType, instruction: int) -> Set[str]:
    """Names of variables, cells and globals that may be read after this instruction (an offset, `f_lasti`)."""
    if READS_ANY.intersection(code.co_names):
        return {*code.co_names, *code.co_varnames, *code.co_cellvars, *code.co_freevars}
    steps, handlers = _flow(code)
    live: Dict[int, Set[str]] = {offset: set() for offset in steps}
    changed = True
    while changed:
        changed = False
        caught: Set[str] = set().union(*(live[offset] for offset in handlers)) if handlers else set()
        for offset in reversed(steps):
            step = steps[offset]
            after = caught.union(*(live[follower] for follower in step.follows)) if step.follows else caught
            before = step.reads | (after - step.writes)
            if not before <= live[offset]:
                live[offset] |= before
                changed = True
    found = set().union(*(live[follower] for follower in steps[instruction].follows))
    for offset in handlers:
        found |= live[offset]
    return found | set(code.co_cellvars) | set(code.co_freevars)  # others may read those


def _flow(code: CodeType) -> Tuple[Dict[int, _Step], List[int]]:
    instructions = list(dis.get_instructions(code))
    steps: Dict[int, _Step] = {}
    handlers = []
    for instruction, following in zip(instructions, [*instructions[1:], None]):
        step = steps[instruction.offset] = _Step()
        name = instruction.opname
        names = _names(instruction)
        if name.startswith(_STORES) and "LOAD" not in name:
            step.writes.update(names)
        elif name.startswith("STORE_FAST"):  # STORE_FAST_LOAD_FAST: the second is read
            step.writes.update(names[:1])
            step.reads.update(set(names[1:]) - set(names[:1]))
        elif name.startswith(_LOADS):
            step.reads.update(names)
        if instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs:
            step.follows.append(int(instruction.argval))
        if following is not None and name not in _ENDS and name not in _JUMPS_ALWAYS:
            step.follows.append(following.offset)
        if name == "PUSH_EXC_INFO":
            handlers.append(instruction.offset)
        elif name.startswith("SETUP_") and step.follows:  # before Python 3.11
            handlers.append(step.follows[0])
    return steps, handlers


def _names(instruction: dis.Instruction) -> List[str]:
    value = instruction.argval
    if isinstance(value, tuple):
        return [str(one) for one in value]
    return [value] if isinstance(value, str) else []


def nested(code: CodeType) -> Iterator[CodeType]:
    """Every function and class body inside, at any depth."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from nested(constant)


def read_by_functions(module: CodeType) -> Set[str]:
    """Globals that functions of this module name."""
    found: Set[str] = set()
    for code in nested(module):
        found.update(code.co_names)
    return found
