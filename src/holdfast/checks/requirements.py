"""What one installed package requires of another, and the version that is there instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from holdfast.checks.contract import Line, warn
from holdfast.checks.installed import Package, is_watched, normalised

MUST_BE_THERE = frozenset({"numpy", "protobuf", "keras", "jaxlib"})  # others go by several names
EXTRAS = (
    "",
    "cuda12",
    "cuda13",
    "cuda12-local",
    "cuda13-local",
)  # other extras name what they were tested with, long ago


def unmet(found: Mapping[str, Package], markers: Mapping[str, str]) -> Iterator[Line]:
    # Imported only where it is needed: 15 ms.
    from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415

    told: set[tuple[str, str]] = set()
    for package in found.values():
        for text in package.requires:
            try:
                wanted = Requirement(text)
            except InvalidRequirement:
                continue
            name = normalised(wanted.name)
            extra = next((each for each in EXTRAS if _applies(wanted, markers, each)), None)
            if extra is None or not is_watched(name) or (package.name, name) in told:
                continue
            there = found.get(name)
            if there is None:
                said = "is not installed" if not extra and name in MUST_BE_THERE else ""
            else:
                try:
                    meets = wanted.specifier.contains(Version(there.version), prereleases=True)
                except InvalidVersion:
                    meets = True
                said = "" if meets else f"{there.version} is installed"
            if said:
                told.add((package.name, name))
                needs = f"{package.name} {package.version} needs {name}{wanted.specifier}"
                fix = (
                    f"pip install '{name}{wanted.specifier}', or another version of {package.name}; pip check lists all"
                )
                yield warn("package-versions", f"{needs}, and {said}", fix)


def _applies(wanted: object, markers: Mapping[str, str], extra: str) -> bool:
    marker = getattr(wanted, "marker", None)
    return (not extra) if marker is None else bool(marker.evaluate({**markers, "extra": extra}))
