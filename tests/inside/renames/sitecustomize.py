"""Renames one name everywhere in a framework, as its next version might. For tests, by way of PYTHONPATH.

HOLDFAST_TEST_RENAME=PACKAGE:NAME renames an identifier in all source files of the package as they are imported;
PACKAGE:NAME.py a module of that name.
"""

import importlib.machinery
import os
import re
import sys

PACKAGE, _, NAME = os.environ.get("HOLDFAST_TEST_RENAME", ":").partition(":")
MOVED = NAME.endswith(".py")
WORD = re.compile(rb"\b" + re.escape(NAME.removesuffix(".py").encode()) + rb"\b")
AFTER = NAME.removesuffix(".py") + "_of_the_next_version"


class _Renamed(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        with open(self.path, "rb") as file:
            source = WORD.sub(AFTER.encode(), file.read())
        return compile(source, self.path, "exec", dont_inherit=True)


class _Renaming:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.split(".")[0] != PACKAGE:
            return None
        there = re.sub(rf"\b{AFTER}\b", NAME.removesuffix(".py"), name) if MOVED else name
        spec = importlib.machinery.PathFinder.find_spec(there, path, target)
        if spec is None or type(spec.loader) is not importlib.machinery.SourceFileLoader:
            return None
        with open(spec.origin, "rb") as file:
            if there == name and not WORD.search(file.read()):
                return None
        if MOVED and there == name and name.split(".")[-1] == NAME.removesuffix(".py"):
            return None
        found = importlib.machinery.ModuleSpec(
            name,
            _Renamed(name, spec.origin),
            origin=spec.origin,
            is_package=spec.submodule_search_locations is not None,
        )
        found.has_location = True
        if found.submodule_search_locations is not None:
            found.submodule_search_locations[:] = spec.submodule_search_locations
        return found


if PACKAGE:
    sys.meta_path.insert(0, _Renaming)
