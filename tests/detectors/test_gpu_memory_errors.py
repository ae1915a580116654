"""Memory errors that come while a run goes on are told; those of before are not the run's."""

from __future__ import annotations

from holdfast.detectors.gpu_memory_errors import find
from holdfast.vocabulary import Sample, Window

AT = 1_000.0


def window(errors: list[float | None], to_remap: list[float]) -> Window:
    def series(name: str, values: list[float | None] | list[float]) -> list[Sample]:
        return [Sample(name, value, AT + number) for number, value in enumerate(values)]

    ecc, rows = "gpu0.ecc_uncorrected_count", "gpu0.rows_to_remap_count"
    return Window([], {ecc: series(ecc, errors), rows: series(rows, to_remap)})


def test_errors_during_the_run_are_told_with_what_waits_for_a_reset() -> None:
    found = find(window([0, 0, 2], [0, 0, 1]))

    assert found is not None
    assert found.cause == "gpu-hardware-fault"
    assert [item.value for item in found.evidence] == [2, 1]
    assert "2 memory errors that could not be corrected during the run (2 in all)" in found.evidence[0].text


def test_errors_of_before_are_left_alone() -> None:
    assert find(window([7, 7, 7], [1, 1, 1])) is None


def test_a_card_without_such_counters_is_left_alone() -> None:
    assert find(window([None, None], [])) is None
