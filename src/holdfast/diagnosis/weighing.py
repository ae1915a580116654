"""Findings of one run or one text, the likeliest first: cause before symptom, the first before its echoes.

One rule for both. `only_text` says that nothing but a text is known: how the run ended was not seen, so what only slows a run
may be all there is to tell, what is usual counts, and two causes that are both likely leave doubt.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from holdfast.causes import CAUSES, EXPLAINS, GENERIC, SAYS_MORE, those
from holdfast.vocabulary import Finding

SURE = 0.5  # below it a finding is a guess, named under `also`
GUESS = 0.4
LEAST = 0.05
WORTH_A_GUESS = 0.42
LAST_GUESS = 0.35
CLOSE_IN_TEXT, CLOSE = 0.12, 0.05  # causes nearly as likely: the earlier one is the cause
SOONER_S = 2.0
CONTESTED = 0.75  # two that are both likely, and nothing but a text says which: not more than this
MOST = 0.98

Moment = tuple[float, int]  # its time, where it is known, and the number of its line
NEVER: Moment = (math.inf, 0)


def merged(findings: Sequence[Finding]) -> list[Finding]:
    """Findings of the same cause, each from a source of its own, strengthen each other and put their evidence together."""
    found = []
    for cause in dict.fromkeys(finding.cause for finding in findings):
        same = [finding for finding in findings if finding.cause == cause]
        doubt = math.prod(1 - finding.confidence for finding in same)
        evidence = tuple(dict.fromkeys(item for finding in same for item in finding.evidence))
        details = {key: value for finding in reversed(same) for key, value in finding.details.items()}
        headline = next((finding.headline for finding in same if finding.headline), "")
        found.append(Finding(cause, min(1 - doubt, MOST), evidence, details, headline=headline))
    return found


def ranked(findings: Sequence[Finding], seen: Mapping[str, Moment], *, only_text: bool) -> list[Finding]:
    """`seen`: when each cause was first heard of."""
    weighed = _without_lesser(_with_what_led_there(findings, only_text))
    if not only_text:
        weighed = [at_most(f, GUESS) if CAUSES[f.cause].slows else f for f in weighed]
    weighed = _symptoms_last(weighed, {f.cause: f.confidence for f in findings}, only_text)
    weighed = sorted(weighed, key=lambda finding: -finding.confidence)
    return _contested(weighed, seen) if only_text else _sooner_first(weighed, seen)


def at_most(finding: Finding, confidence: float) -> Finding:
    return replace(finding, confidence=min(finding.confidence, confidence))


def _with_what_led_there(findings: Sequence[Finding], only_text: bool) -> list[Finding]:
    """A leak that was named explains the kill it ended in, takes over its evidence, and is no cause of another end."""
    ended = {finding.cause: finding for finding in findings}
    weighed = dict(ended)
    for cause in EXPLAINS.keys() & ended.keys():
        reason = ended[cause]
        symptoms = [ended[name] for name in EXPLAINS[cause] & ended.keys() if ended[name].confidence >= SURE]
        if symptoms and reason.confidence >= SURE:
            told = (item for symptom in symptoms for item in symptom.evidence)
            weighed[cause] = replace(reason, evidence=tuple(dict.fromkeys((*reason.evidence, *told))))
            weighed |= {symptom.cause: at_most(symptom, 1 - reason.confidence) for symptom in symptoms}
        elif not only_text:
            weighed[cause] = at_most(reason, GUESS)
    return list(weighed.values())


def _without_lesser(findings: Sequence[Finding]) -> list[Finding]:
    """Of two that are seen of one event, the one that says more."""
    sure = {finding.cause: finding.confidence for finding in findings if finding.confidence >= SURE}
    more = {
        finding.cause: max((sure[cause] for cause in sure if finding.cause in SAYS_MORE.get(cause, ())), default=0.0)
        for finding in findings
    }
    return [at_most(f, max(1 - more[f.cause], LEAST)) if more[f.cause] else f for f in findings]


def _symptoms_last(findings: Sequence[Finding], before: Mapping[str, float], only_text: bool) -> list[Finding]:
    """A symptom is the cause only where no likely explanation of it is; so is an echo, where only a text tells of it."""
    echo = those("echo") if only_text else frozenset[str]()

    def likeliest(but_not: frozenset[str]) -> float:
        return max((f.confidence for f in findings if f.cause not in but_not and f.confidence >= SURE), default=0.0)

    particular, own = likeliest(GENERIC), likeliest(GENERIC | echo)
    told = max(particular, likeliest(GENERIC - {"worker-died"}))  # the exception only reports that worker's death
    limits = dict.fromkeys(echo, 1 - own) | dict.fromkeys(GENERIC, 1 - particular) | {"unhandled-exception": 1 - told}
    if only_text and _hints(before):
        limits["native-crash"] = min(limits["native-crash"], SURE - 0.02)  # something led there, and what is not told
    weighed = [at_most(f, max(limits.get(f.cause, 1.0), LEAST)) for f in findings]
    nothing_sure = all(finding.confidence < SURE for finding in weighed)
    if nothing_sure and any(f.confidence >= GUESS for f in weighed if f.cause not in GENERIC):
        # That there was an exception is the least of the guesses.
        weighed = [at_most(f, LAST_GUESS) if f.cause in GENERIC else f for f in weighed]
    return weighed


def _hints(before: Mapping[str, float]) -> bool:
    others = GENERIC | those("echo") | {"host-memory-exhausted"}
    return any(sure >= WORTH_A_GUESS for cause, sure in before.items() if cause not in others)


def _contested(weighed: list[Finding], seen: Mapping[str, Moment]) -> list[Finding]:
    best = weighed[0].confidence if weighed else 0.0
    rivals = [f for f in weighed if f.confidence >= max(SURE, best - CLOSE_IN_TEXT)]
    if len(rivals) < 2:
        return weighed
    first = min(rivals, key=lambda finding: seen.get(finding.cause, NEVER))
    return [at_most(first, CONTESTED), *(at_most(f, CONTESTED - 0.05) for f in weighed if f is not first)]


def _sooner_first(weighed: list[Finding], seen: Mapping[str, Moment]) -> list[Finding]:
    if len(weighed) < 2 or weighed[1].confidence < max(SURE, weighed[0].confidence - CLOSE):
        return weighed
    first, second = (seen.get(finding.cause, NEVER)[0] for finding in weighed[:2])
    if not math.isfinite(first) or second >= first - SOONER_S:
        return weighed
    likelier, sooner = weighed[:2]
    return [
        replace(sooner, confidence=likelier.confidence),
        replace(likelier, confidence=sooner.confidence),
        *weighed[2:],
    ]
