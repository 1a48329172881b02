"""What readers, generators and probing tasks share: modules that register functions, and options of these functions."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

from bertology.errors import unknown_name


def import_modules(package: str) -> None:
    """Import all modules of a package, so that they register their functions."""
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")


def function_options(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The keyword-only parameters of a function, set by `--format-option NAME=VALUE`."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def check_options(function: Callable[..., Any], options: Mapping[str, Any], owner: str) -> None:
    """Refuse options that the function does not have, and values other than those of a `Literal`."""
    names = function_options(function)
    try:
        types = get_type_hints(function)
    except NameError:  # a plug-in may import types for the type checker only
        types = {}
    for name, value in sorted(options.items()):
        if name not in names:
            raise unknown_name(f"option of the {owner}", name, names)
        option_type = types.get(name)
        choices = get_args(option_type)
        if get_origin(option_type) is Literal and value not in choices:
            raise unknown_name(f"value of the option {name}", value, choices)
