"""A tokenizer's package, release 0.4."""

from importlib.metadata import version

from lexkit_next import Vocabulary

REQUIRES = ("numpy", "1.17", "1.20")


def _require(package, at_least, below):
    found = version(package)
    parts = tuple(int(part) for part in found.split(".")[:2])
    if not tuple(map(int, at_least.split("."))) <= parts < tuple(map(int, below.split("."))):
        raise ImportError(
            f"{package}>={at_least},<{below} is required for a normal functioning of this module, "
            f"but found {package}=={found}.\nTry: `pip install '{package}>={at_least},<{below}'`"
        )


_require(*REQUIRES)
__all__ = ["Vocabulary"]
