"""All analyses by name: the built-in ones under `analyses/`, and those of installed plug-ins.

A plug-in is a package with an entry point in the group `bertology.analyses` that names a declared analysis and is
called like it. A plug-in that cannot be loaded keeps its name, and `get` refuses it with the reason.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from bertology.analyses.declaration import Analysis
from bertology.errors import Refusal, unknown_name
from bertology.plugins import Plugin, PluginError, load_plugin

ENTRY_POINT_GROUP = "bertology.analyses"
GROUPS = ("attention", "heads", "probes", "geometry", "interventions", "senses", "features")
"""The packages under `analyses/` that hold analyses; the other packages are toolkits shared by several."""


@cache
def names() -> tuple[str, ...]:
    """The names of all analyses, built in and plugged in, without importing any."""
    return tuple(sorted({*_builtin_modules(), *_plugin_names()}))


def get(name: str) -> Analysis:
    """The analysis of that name."""
    if name in _builtin_modules():
        return _load_declared(_builtin_modules()[name])
    if name in _plugin_names():
        plugin = load_plugin(_plugin_names()[name], _load_plugged_in)
        if plugin.problem:
            raise plugin.refusal
        return plugin.value
    raise unknown_name("analysis", name, names(), remedy="See `bertology list analyses`")


def find(name: str) -> Analysis | None:
    """The analysis of that name; None if there is none, or if it is a plug-in that cannot be loaded."""
    try:
        return get(name)
    except Refusal:
        return None


def load_all() -> tuple[Analysis, ...]:
    """Every analysis, imported; a plug-in that cannot be loaded is left out with a warning."""
    analyses = [get(name) for name in _builtin_modules()]
    for plugin in plugins():
        if plugin.problem:
            plugin.warn()
        else:
            analyses.append(plugin.value)
    return tuple(sorted(analyses, key=lambda analysis: analysis.name))


def plugins() -> tuple[Plugin, ...]:
    """The analyses of installed plug-ins, imported, with the problems of those that cannot be."""
    return tuple(load_plugin(entry, _load_plugged_in) for entry in entry_points(group=ENTRY_POINT_GROUP))


def package_versions(name: str) -> dict[str, str]:
    """The package of a plugged-in analysis with its version; empty for a built-in one."""
    entry = None if name in _builtin_modules() else _plugin_names().get(name)
    return {} if entry is None or entry.dist is None else {entry.dist.name: entry.dist.version}


def clear_caches() -> None:
    """Forget the names found so far, after a plug-in was installed."""
    for cached in (names, _builtin_modules, _plugin_names):
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
def _plugin_names() -> dict[str, EntryPoint]:
    """The entry point of every plugged-in analysis; the first of two with the same name."""
    return {entry.name: entry for entry in reversed(tuple(entry_points(group=ENTRY_POINT_GROUP)))}


def _load_plugged_in(entry: EntryPoint) -> Analysis:
    if entry.name in _builtin_modules():
        raise PluginError("a built-in analysis has this name")
    if entry != _plugin_names()[entry.name]:
        raise PluginError("another plug-in has this name")
    loaded = entry.load()
    if not isinstance(loaded, Analysis):
        raise PluginError(f"{entry.value} is not a declared analysis")
    if loaded.name != entry.name:
        raise PluginError(f"{entry.value} is the analysis {loaded.name}, not {entry.name}")
    return loaded


def _load_declared(module: str) -> Analysis:
    declared = [value for value in vars(importlib.import_module(module)).values() if isinstance(value, Analysis)]
    own = [analysis for analysis in declared if analysis.function.__module__ == module]
    if len(own) != 1:
        raise TypeError(f"{module} declares {len(own)} analyses; expected one")
    return own[0]
