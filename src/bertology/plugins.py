"""Plug-ins: analyses, readers, model families and claims of other installed packages, named by their entry points.

A plug-in that fails is a message, never a broken command: `load_plugin` returns the problem instead of raising it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any

from bertology.errors import LoadWarning, Refusal

LIST_COMMAND = "bertology list plugins"


@dataclass(frozen=True)
class Plugin:
    """An entry point of another package, and what it names: a value, or the problem of loading it."""

    entry_point: EntryPoint
    value: Any = None
    problem: str = ""

    @property
    def name(self) -> str:
        """The name under which users know it."""
        return self.entry_point.name

    @property
    def package(self) -> str:
        """The name of the package that provides it."""
        return self.entry_point.dist.name if self.entry_point.dist is not None else ""

    @property
    def version(self) -> str:
        """The version of that package."""
        return self.entry_point.dist.version if self.entry_point.dist is not None else ""

    @property
    def refusal(self) -> Refusal:
        """The refusal of a plug-in with a problem, for a command that needs it."""
        return Refusal(
            f"The plug-in {self.name} of {self.package} {self.version} cannot be used: {self.problem}",
            "a plug-in that can be loaded",
            f"Update or uninstall {self.package}; see `{LIST_COMMAND}`",
        )

    def warn(self) -> None:
        """Say the problem in one line, for a command that goes on without the plug-in."""
        message = f"the plug-in {self.name} of {self.package} {self.version} is left out: {self.problem}"
        warnings.warn(f"{message} (see `{LIST_COMMAND}`).", LoadWarning, stacklevel=2)


def load_plugin(entry_point: EntryPoint, accept: Callable[[EntryPoint], Any]) -> Plugin:
    """The plug-in of an entry point; `accept` loads it and raises an exception if it is not what it should be."""
    try:
        return Plugin(entry_point, accept(entry_point))
    except (Exception, SystemExit) as error:  # code of another package, which may fail in any way
        reason = " ".join(str(error).split())[:300]
        is_explained = isinstance(error, Refusal | PluginError)
        return Plugin(entry_point, problem=reason if is_explained else f"{type(error).__name__}: {reason}")


class PluginError(Exception):
    """A plug-in was loaded and is not what its entry point should name."""
