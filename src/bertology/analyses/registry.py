"""All analyses by name: the built-in ones under `analyses/`, and those of installed plug-ins.

A plug-in is a package with an entry point in the group `bertology.analyses` that names a declared analysis.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from bertology.analyses.declaration import Analysis
from bertology.errors import unknown_name

ENTRY_POINT_GROUP = "bertology.analyses"
GROUPS = ("attention", "heads", "probes", "geometry", "interventions", "senses", "features")
"""The packages under `analyses/` that hold analyses; the other packages are toolkits shared by several."""


@cache
def names() -> tuple[str, ...]:
    """The names of all analyses, built in and plugged in, without importing any."""
    return tuple(sorted({*_builtin_modules(), *_plugins()}))


def get(name: str) -> Analysis:
    """The analysis of that name."""
    if name in _builtin_modules():
        return _load_declared(_builtin_modules()[name])
    if name in _plugins():
        loaded = _plugins()[name].load()
        if not isinstance(loaded, Analysis):
            raise TypeError(f"the entry point {name!r} of {ENTRY_POINT_GROUP} is not a declared analysis: {loaded!r}")
        return loaded
    raise unknown_name("analysis", name, names(), remedy="See `bertology list analyses`")


def load_all() -> tuple[Analysis, ...]:
    """Every analysis, imported."""
    return tuple(get(name) for name in names())


def clear_caches() -> None:
    """Forget the names found so far, after a plug-in was installed."""
    for cached in (names, _builtin_modules, _plugins):
        cached.cache_clear()


@cache
def _builtin_modules() -> dict[str, str]:
    """The module of every built-in analysis: a file, or `analysis.py` in a folder of the analysis's name."""
    import bertology.analyses as package

    modules: dict[str, str] = {}
    for group in GROUPS:
        directory = importlib.import_module(f"{package.__name__}.{group}")
        for module in pkgutil.iter_modules(directory.__path__):
            path = f"{directory.__name__}.{module.name}"
            modules[f"{group}/{module.name}"] = f"{path}.analysis" if module.ispkg else path
    return modules


@cache
def _plugins() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}


def _load_declared(module: str) -> Analysis:
    declared = [value for value in vars(importlib.import_module(module)).values() if isinstance(value, Analysis)]
    own = [analysis for analysis in declared if analysis.function.__module__ == module]
    if len(own) != 1:
        raise TypeError(f"{module} declares {len(own)} analyses; expected one")
    return own[0]
