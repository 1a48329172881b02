"""Every analysis by name: the files under `analyses/`, and those of installed plug-ins.

A plug-in is a package with an entry point in the group `bertology.analyses` that names a declared analysis.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from bertology.analyses.declaration import Analysis
from bertology.errors import unknown_name

GROUP = "bertology.analyses"


@cache
def names() -> tuple[str, ...]:
    """The names of all analyses, built in and plugged in, without importing any."""
    return tuple(sorted({*_built_in(), *_plugged_in()}))


def get(name: str) -> Analysis:
    """The analysis of that name."""
    if name in _built_in():
        return _declared_in(_built_in()[name])
    if name in _plugged_in():
        loaded = _plugged_in()[name].load()
        if not isinstance(loaded, Analysis):
            raise TypeError(f"the entry point {name!r} of {GROUP} is no declared analysis but {loaded!r}")
        return loaded
    raise unknown_name("analysis", name, names(), remedy="See `bertology list analyses`")


def load_all() -> tuple[Analysis, ...]:
    """Every analysis, imported."""
    return tuple(get(name) for name in names())


@cache
def _built_in() -> dict[str, str]:
    import bertology.analyses as package

    found: dict[str, str] = {}
    for group in pkgutil.iter_modules(package.__path__):
        if group.ispkg:
            folder = importlib.import_module(f"{package.__name__}.{group.name}")
            for module in pkgutil.iter_modules(folder.__path__):
                found[f"{group.name}/{module.name}"] = f"{folder.__name__}.{module.name}"
    return found


@cache
def _plugged_in() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _declared_in(module: str) -> Analysis:
    declared = [value for value in vars(importlib.import_module(module)).values() if isinstance(value, Analysis)]
    own = [value for value in declared if value.function.__module__ == module]
    if len(own) != 1:
        raise TypeError(f"{module} declares {len(own)} analyses, not one")
    return own[0]
