"""Each cause in words, and what to do about it, as commands or code that run today."""

from __future__ import annotations

from holdfast.diagnosis.catalogue import data, gpu, limits, memory, numerics, process, ranks
from holdfast.diagnosis.catalogue.recipe import Entry, Recipe
from holdfast.inside.frameworks import BY_MODULE
from holdfast.vocabulary import Finding, Remedy

__all__ = ["CATALOGUE", "EXPLAINS", "GENERIC", "SAYS_MORE", "Entry", "Recipe", "remedies_for"]

CATALOGUE: dict[str, Entry] = {
    **memory.ENTRIES,
    **limits.ENTRIES,
    **numerics.ENTRIES,
    **data.ENTRIES,
    **process.ENTRIES,
    **gpu.ENTRIES,
    **ranks.ENTRIES,
}

# Symptoms that a more particular cause explains.
GENERIC = frozenset({"unhandled-exception", "native-crash", "killed", "worker-died"})

# What ends no run by itself, and the endings it explains.
EXPLAINS: dict[str, frozenset[str]] = {
    "host-memory-leak": frozenset({"container-memory-limit", "host-memory-exhausted", "swap-thrash"}),
    "gpu-memory-leak": frozenset({"gpu-memory-exhausted"}),
}

# Both may be seen of one event; the first says more, and stands by itself.
SAYS_MORE: dict[str, frozenset[str]] = {
    "dataset-in-memory": frozenset({"host-memory-exhausted", "container-memory-limit", "swap-thrash"}),
    "gpu-memory-held-by-others": frozenset({"gpu-memory-exhausted", "gpu-memory-fragmented"}),
    "gpu-memory-fragmented": frozenset({"gpu-memory-exhausted"}),
    "bad-input-values": frozenset(
        {"invalid-math", "exploding-gradients", "learning-rate-too-high", "mixed-precision-overflow"}
    ),
    "mixed-precision-overflow": frozenset({"exploding-gradients", "invalid-math"}),
    "checkpoint-mismatch": frozenset({"shape-mismatch"}),
    "label-out-of-range": frozenset({"gpu-illegal-access"}),
    "index-out-of-range": frozenset({"gpu-illegal-access"}),
    "gpu-hardware-fault": frozenset({"gpu-illegal-access"}),
    "gpu-lost": frozenset({"gpu-illegal-access", "gpu-hardware-fault", "collective-timeout"}),
    "shared-memory-exhausted": frozenset({"disk-full"}),
}


def remedies_for(finding: Finding, framework: str) -> tuple[Remedy, ...]:
    """The recipes for the framework seen; all of them when none was. A kind of failure may bring one that is there anyway."""
    seen = BY_MODULE[framework].remedies_of if framework in BY_MODULE else framework
    recipes = CATALOGUE[finding.cause].recipes
    fitting = [recipe for recipe in recipes if not recipe.framework or not seen or recipe.framework == seen]
    fitting.sort(key=lambda recipe: not recipe.said)
    return tuple(dict.fromkeys(remedy for recipe in fitting if (remedy := recipe.fill(finding, seen)) is not None))
