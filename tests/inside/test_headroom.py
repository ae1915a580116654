from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.inside.headroom import left

MIB = 1 << 20


def machine(place: Path, available: int, swap: int = 0) -> str:
    path = place / "meminfo"
    path.write_text(f"MemTotal: 99999999 kB\nMemAvailable: {available * 1024} kB\nSwapFree: {swap * 1024} kB\n")
    return str(path)


def group(
    place: Path, limit: object, used: int, *, cache: int = 0, swap: object = 0, version: int = 2
) -> dict[str, Any]:
    place.mkdir(exist_ok=True)
    for name, value in (("limit", limit), ("usage", used * MIB), ("swap", swap)):
        (place / name).write_text(f"{value}\n")
    (place / "stat").write_text(f"anon 5\ninactive_file {cache * MIB}\nactive_file 0\n")
    names: dict[str, Any] = {name: str(place / name) for name in ("limit", "usage", "stat", "swap")}
    return {**names, "cache": ["inactive_file", "active_file"], "swap_with_memory": version == 1}


def test_the_tightest_of_the_groups_and_the_machine_binds(tmp_path: Path) -> None:
    inner, outer = group(tmp_path / "a", 900 * MIB, 600), group(tmp_path / "b", 2000 * MIB, 1900)
    assert left([inner, outer], machine(tmp_path, 50_000)) == (100 * MIB, "container")
    assert left([inner, outer], machine(tmp_path, 40)) == (40 * MIB, "machine")


def test_page_cache_is_given_up_when_memory_is_needed(tmp_path: Path) -> None:
    assert left([group(tmp_path / "a", 900 * MIB, 880, cache=500)], machine(tmp_path, 9000)) == (520 * MIB, "container")


def test_a_group_without_a_limit_does_not_bind(tmp_path: Path) -> None:
    for none in ("max", 9223372036854771712):
        assert left([group(tmp_path / "a", none, 880)], machine(tmp_path, 9000)) == (9000 * MIB, "machine")


def test_swap_counts_where_the_group_may_use_it(tmp_path: Path) -> None:
    with_swap = machine(tmp_path, 9000, swap=300)
    assert left([group(tmp_path / "a", 900 * MIB, 800, swap="max")], with_swap) == (400 * MIB, "container")
    assert left([group(tmp_path / "a", 900 * MIB, 800, swap=0)], with_swap) == (100 * MIB, "container")
    v1 = group(tmp_path / "a", 900 * MIB, 800, swap=1000 * MIB, version=1)
    assert left([v1], with_swap) == (200 * MIB, "container"), "version 1 counts memory and swap together"


def test_where_nothing_says_nothing_is_known(tmp_path: Path) -> None:
    assert left([], str(tmp_path / "absent")) is None
