"""Every alternative of a rule is proved by a message that some program prints, and that the rule would miss without it."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from holdfast.causes import CAUSES
from holdfast.causes.form import CauseRecord, Rule, Says
from holdfast.diagnosis.reading.matching import fits
from holdfast.diagnosis.reading.scan import excerpt
from holdfast.diagnosis.tracebacks import Raised, chains
from holdfast.diagnosis.verdict import diagnose_log
from holdfast.vocabulary import Diagnosis

NAMED = re.compile(r"(?:[\w.]+\.)?(?P<type>[A-Za-z_]\w+): (?P<message>[\s\S]*)")

Proved = tuple[CauseRecord, Says]


def _rules(record: CauseRecord) -> Iterator[tuple[bool, Rule]]:
    yield from ((True, rule) for rule in record.exceptions)
    yield from ((False, rule) for rule in record.lines)


def _alternatives(record: CauseRecord) -> list[Says]:
    found = [says for _, rule in _rules(record) for says in rule.alternatives]
    proved = {says.pattern: says for says in sorted(found, key=lambda says: len(says.examples))}
    return list(proved.values())


ALL: list[Proved] = [(record, says) for record in CAUSES.values() for says in _alternatives(record)]
PROVED = [(record, says) for record, says in ALL if says.examples]
NEAR = [(record, says) for record, says in ALL if says.near]


def _name(value: object) -> str:
    return value.id if isinstance(value, CauseRecord) else value.pattern[:40] if isinstance(value, Says) else str(value)


def _raised(text: str) -> Iterator[Raised]:
    for chain in chains(text.split("\n")):
        yield from chain
    if named := NAMED.match(text):
        yield Raised(named["type"], named["message"], ())
    yield Raised("", text, ())


def _applies(rule: Rule, raised: bool, text: str) -> bool:
    if raised:
        return any(fits(rule, one) is not None for one in _raised(text))
    return any(rule.match(line) is not None for line in text.split("\n"))


def _needs(record: CauseRecord, says: Says, text: str) -> bool:
    """Some rule reads the text with this alternative and does not without it."""
    for raised, rule in _rules(record):
        rest = tuple(one for one in rule.alternatives if one.pattern != says.pattern)
        if len(rest) == len(rule.alternatives) or not _applies(rule, raised, text):
            continue
        if not rest or not _applies(replace(rule, alternatives=rest), raised, text):
            return True
    return False


def _why(text: str) -> Diagnosis:
    return diagnose_log(excerpt(io.BytesIO(f"{text}\n".encode())))


@pytest.mark.parametrize(("record", "says"), PROVED, ids=_name)
def test_an_alternative_is_needed_by_a_message_that_names_the_cause(record: CauseRecord, says: Says) -> None:
    sharing = [other for other in CAUSES.values() if any(one.pattern == says.pattern for one in _alternatives(other))]
    assert any(_needs(other, says, example.text) for example in says.examples for other in sharing)
    for example in says.examples:
        answer = _why(example.text)
        named = {cause.id for cause in (answer.cause, *answer.also) if cause is not None}
        # What a rule shared by several causes reads may be any of theirs.
        if _needs(record, says, example.text):
            assert record.id in named, example


@pytest.mark.parametrize(("record", "says"), NEAR, ids=_name)
def test_what_shares_its_words_and_means_something_else_is_not_named(record: CauseRecord, says: Says) -> None:
    assert says.near
    for near in says.near:
        answer = _why(near.text)
        assert record.id != (answer.cause.id if answer.cause is not None else ""), near


def test_every_example_says_where_it_is_from() -> None:
    for record, says in ALL:
        for example in (*says.examples, *says.near):
            assert example.source.strip() and example.text.strip(), (record.id, says.pattern)


def test_every_alternative_is_proved() -> None:
    assert ALL and [(record.id, says.pattern) for record, says in ALL if not says.examples] == []
