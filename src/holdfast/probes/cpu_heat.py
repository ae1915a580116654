"""How hot the processor is, where its limit lies, and how often it was slowed down for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.probes.contract import Missing, Reading, Scope
from holdfast.probes.kernel_files import read
from holdfast.vocabulary import Sample

CHIPS = ("coretemp", "k10temp", "k8temp", "zenpower", "cpu_thermal", "scpi_sensors", "via_cputemp")
ZONES = ("x86_pkg_temp", "cpu")  # names of thermal zones that mean the processor start with these


@dataclass(frozen=True, slots=True)
class Sensor:
    path: str
    limit_celsius: float | None


class CpuHeat:
    name = "cpu_heat"
    every_s = 5.0

    def __init__(self, scope: Scope) -> None:
        self._sensors = list(_chips(scope.root)) or list(_zones(scope.root))
        processors = scope.root / "sys/devices/system/cpu"
        self._counters = [str(path) for path in processors.glob("cpu[0-9]*/thermal_throttle/*_throttle_count")]
        if not self._sensors and not self._counters:
            raise Missing("this machine shows neither a temperature nor a throttle count of its processor")

    def read(self, now: float) -> list[Reading]:
        readings: list[Reading] = []
        if self._sensors:
            readings += self._temperature(now)
        if self._counters:
            counts = [count for count in map(_number, self._counters) if count is not None]
            total = sum(counts) if counts else None
            readings.append(Sample("cpu.throttle_count", total, now, "" if counts else "the counters do not answer"))
        return readings

    def _temperature(self, now: float) -> list[Sample]:
        read_now = [(_celsius(sensor.path), sensor) for sensor in self._sensors]
        answers = [(celsius, sensor) for celsius, sensor in read_now if celsius is not None]
        if not answers:
            reason = "the sensors do not answer"
            names = ("cpu.temperature_celsius", "cpu.temperature_limit_celsius")
            return [Sample(name, None, now, reason) for name in names]
        celsius, sensor = max(answers, key=lambda answer: answer[0])
        no_limit = "" if sensor.limit_celsius is not None else "the sensor names no limit"
        return [
            Sample("cpu.temperature_celsius", celsius, now),
            Sample("cpu.temperature_limit_celsius", sensor.limit_celsius, now, no_limit),
        ]


def _chips(root: Path) -> Iterator[Sensor]:
    for chip in sorted((root / "sys/class/hwmon").glob("hwmon*")):
        if _word(chip / "name") not in CHIPS:
            continue
        for sensor in sorted(chip.glob("temp*_input")):
            stem = str(sensor).removesuffix("_input")
            yield Sensor(str(sensor), _celsius(f"{stem}_crit") or _celsius(f"{stem}_max"))


def _zones(root: Path) -> Iterator[Sensor]:
    for zone in sorted((root / "sys/class/thermal").glob("thermal_zone*")):
        if _word(zone / "type").lower().startswith(ZONES):
            critical = next((p for p in sorted(zone.glob("trip_point_*_type")) if _word(p) == "critical"), None)
            limit = _celsius(str(critical).replace("_type", "_temp")) if critical else None
            yield Sensor(str(zone / "temp"), limit)


def _celsius(path: str) -> float | None:
    millis = _number(path)
    return None if millis is None or millis == 0 else millis / 1000


def _number(path: str) -> int | None:
    try:
        return int(read(path))
    except (OSError, ValueError):
        return None


def _word(path: Path) -> str:
    try:
        return read(str(path)).decode("ascii", "replace").strip()
    except OSError:
        return ""
