"""What a cause is made of: its record, its rules with the messages they must read, its recipes."""

from __future__ import annotations

from holdfast.causes.form.recipe import JAX, KERAS, TORCH, Recipe, jax, keras, python, shell, torch, words
from holdfast.causes.form.record import Below, CauseRecord, NotSeen, Room, Unmoved, Xids
from holdfast.causes.form.rule import Example, Rule, Says, either, near, rule, says
from holdfast.vocabulary import RestartAdvice, RestartKind

__all__ = [
    "JAX",
    "KERAS",
    "TORCH",
    "Below",
    "CauseRecord",
    "Example",
    "NotSeen",
    "Recipe",
    "RestartAdvice",
    "RestartKind",
    "Room",
    "Rule",
    "Says",
    "Unmoved",
    "Xids",
    "either",
    "jax",
    "keras",
    "near",
    "python",
    "rule",
    "says",
    "shell",
    "torch",
    "words",
]
