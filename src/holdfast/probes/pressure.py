"""Pressure stall information: the share of the last 10 s in which work waited for memory, disk or a processor."""

from __future__ import annotations

from holdfast.probes.contract import Missing, Reading, Scope
from holdfast.probes.kernel_files import read, under, why
from holdfast.vocabulary import Sample

WANTED = (("memory", "some"), ("memory", "full"), ("io", "some"), ("io", "full"), ("cpu", "some"))


class Pressure:
    name = "pressure"
    every_s = 0.5
    signals = tuple(f"pressure.{resource}_{kind}_percent" for resource, kind in WANTED)

    def __init__(self, scope: Scope) -> None:
        self._folder = under(scope.root, "/proc/pressure")
        try:
            read(f"{self._folder}/memory")
        except OSError as error:
            raise Missing(f"pressure stall information is off ({why(error)})") from None

    def read(self, now: float) -> list[Reading]:
        averages: dict[tuple[str, str], float] = {}
        reasons: dict[str, str] = {}
        for resource in ("memory", "io", "cpu"):
            try:
                lines = read(f"{self._folder}/{resource}").decode("ascii", "replace").splitlines()
            except OSError as error:
                reasons[resource] = why(error)
                continue
            averages.update(_averages(resource, lines))
        return [
            Sample(name, averages.get(key), now, "" if key in averages else reasons.get(key[0], "not in the file"))
            for name, key in zip(self.signals, WANTED, strict=True)
        ]


def _averages(resource: str, lines: list[str]) -> dict[tuple[str, str], float]:
    found = {}
    for line in lines:
        kind, _, rest = line.partition(" ")
        word = rest.split(" ", 1)[0]
        if word.startswith("avg10="):
            found[resource, kind] = float(word[len("avg10=") :])
    return found
