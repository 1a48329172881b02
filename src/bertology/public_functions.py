"""The functions of `import bertology` as people call them: wrong types are refused, and progress is shown.

The commands call the same functions inside; there the command line checks what is given. Methods that people call are
decorated with `public_function`.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from bertology.errors import Refusal, unknown_name
from bertology.number_ranges import check_number, range_of_hint, shorten_value
from bertology.progress import ProgressCallback, is_interactive, progress_bars
from bertology.store_paths import RemotePath

F = TypeVar("F", bound=Callable[..., Any])

DESCRIPTIONS: Mapping[Any, str] = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    Path: "a path",
    RemotePath: "an address",
    type(None): "None",
}
MAX_CHECKED_ITEMS = 100


def public_function(function: F) -> F:
    """The function with its arguments checked; where it takes `progress`, with a display of it if a person watches."""
    return _checked_function(function)


@functools.cache
def _checked_function(function: Any) -> Any:
    signature = inspect.signature(function)

    @functools.cache
    def hints() -> dict[str, Any]:
        # When it is called, not decorated: what the module of a method defines after it is not known before.
        return {name: _resolve(function, parameter) for name, parameter in signature.parameters.items()}

    @functools.wraps(function)
    def checked(*arguments: Any, **named: Any) -> Any:
        for name, value in _bind(function, signature, arguments, named).items():
            if signature.parameters[name].default is not value:
                _check_argument(function, name, value, hints()[name])
        if "progress" in signature.parameters and named.get("progress") is None and is_interactive():
            with progress_bars() as start:
                # `record` is one step, and takes the callback of that step.
                is_one_step = ProgressCallback in get_args(hints()["progress"])
                named["progress"] = start("recording") if is_one_step else start
                return function(*arguments, **named)
        return function(*arguments, **named)

    return checked


def check_arguments(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that the function does not take, by name, type and range."""
    parameters = inspect.signature(function).parameters
    for name, value in arguments.items():
        if name not in parameters:
            raise unknown_name(f"argument of {_title(function)}", name, parameters)
        if value is not parameters[name].default:
            _check_argument(function, name, value, _resolve(function, parameters[name]))


def _check_argument(function: Callable[..., Any], name: str, value: Any, hint: Any) -> None:
    if not _matches(value, hint):
        raise _wrong_type(function, name, value, hint)
    bounds = range_of_hint(hint) if get_origin(hint) is Annotated else None
    if bounds is not None:
        check_number(value, bounds, f"{name} of {_title(function)}", f"See help({_title(function)})")


def _bind(
    function: Callable[..., Any], signature: inspect.Signature, arguments: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any]:
    """The named arguments of a call; one that does not fit the function is refused."""
    title = _title(function)
    takes_more = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in signature.parameters.values())
    unknown = [name for name in named if name not in signature.parameters and not takes_more]
    if unknown:
        raise unknown_name(f"argument of {title}", unknown[0], set(signature.parameters) - {"self"})
    try:
        bound = signature.bind(*arguments, **named).arguments
    except TypeError as error:
        required = [name for name, p in signature.parameters.items() if p.default is inspect.Parameter.empty]
        names = ", ".join(name for name in required if name != "self")
        raise Refusal(
            f"{title} was called with arguments that do not fit: {error}",
            f"values for: {names}",
            f"See help({title})",
        ) from error
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return {name: value for name, value in bound.items() if signature.parameters[name].kind not in kinds}


def _resolve(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """The type of a parameter; Any if it is imported for type checkers only."""
    if not isinstance(parameter.annotation, str):
        return Any if parameter.annotation is inspect.Parameter.empty else parameter.annotation
    try:
        return eval(parameter.annotation, vars(inspect.getmodule(function)))  # source of this package
    except NameError:
        return Any


def _matches(value: Any, hint: Any) -> bool:
    """Whether a value has a type; types that are not known here have every value."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _matches(value, arguments[0])
    if origin in (Union, types.UnionType):
        return any(_matches(value, member) for member in arguments)
    if origin is Literal:  # the function itself knows what to say about another value
        return any(isinstance(value, type(member)) for member in arguments)
    if origin is not None and isinstance(origin, type):
        return _matches_generic(value, origin, arguments)
    if hint is None:
        return value is None
    if hint in (int, float):
        return isinstance(value, Integral if hint is int else Real)
    try:
        return not isinstance(hint, type) or isinstance(value, hint)
    except TypeError:  # a protocol that cannot be checked
        return True


def _matches_generic(value: Any, origin: type, arguments: tuple[Any, ...]) -> bool:
    """Whether a value is a collection, or a function, of the type; a string is no collection of strings."""
    if issubclass(origin, Callable):
        return callable(value)
    if not isinstance(value, origin) or (issubclass(origin, Iterable) and isinstance(value, str)):
        return False
    if isinstance(value, list) and len(arguments) == 1:
        items: list[Any] = value
        return all(_matches(item, arguments[0]) for item in items[:MAX_CHECKED_ITEMS])
    return True


def _wrong_type(function: Callable[..., Any], name: str, value: Any, hint: Any) -> Refusal:
    shown = f" ({shorten_value(value)})" if isinstance(value, str | int | float) else ""
    return Refusal(
        f"{_title(function)} was given {name} as {type(value).__name__}{shown}",
        _describe(hint),
        f"See help({_title(function)})",
    )


def _title(function: Callable[..., Any]) -> str:
    """The name under which people call a function: `bertology.run`, `Measure.best`, `AnalysisCallback`."""
    owner, _, name = function.__qualname__.rpartition(".")
    if not owner or "<locals>" in owner:
        return f"bertology.{name}"
    return owner if name == "__init__" else f"{owner}.{name}"


def _describe(hint: Any) -> str:
    """A type in words."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is None:
        return "None"
    if hint in DESCRIPTIONS:
        return DESCRIPTIONS[hint]
    if origin is Annotated:
        return _describe(arguments[0])
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_describe(member) for member in arguments))
    if origin is Literal:
        return f"one of: {', '.join(map(str, arguments))}"
    if origin is not None and isinstance(origin, type):
        if issubclass(origin, Callable):
            return "a function"
        return "a mapping" if issubclass(origin, Mapping) else f"a list, of {_describe(arguments[0])} each"
    return f"a {getattr(hint, '__name__', hint)}"
