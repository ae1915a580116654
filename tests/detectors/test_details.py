"""What a detector hands over for a remedy's text is what some remedy's text has a place for."""

from __future__ import annotations

import re

import pytest

from holdfast.causes import CAUSES
from holdfast.vocabulary import Detail

PLACES = {name for entry in CAUSES.values() for recipe in entry.recipes for name in re.findall(r"\$(\w+)", recipe.how)}


@pytest.mark.parametrize("detail", Detail)
def test_each_detail_has_a_place(detail: Detail) -> None:
    assert detail in PLACES
