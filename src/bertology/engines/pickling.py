"""Values for other processes: pickled by reference where a worker can import them, else by value."""

from __future__ import annotations

import io
import pickle
import sys
from contextvars import ContextVar
from importlib import import_module
from types import ModuleType
from typing import Any

import cloudpickle

from bertology.errors import Refusal

_CONTEXT_VARIABLES = ("CompileableContextVar",)
"""Classes of transformers that hold a context variable; models refer to it after their first forward pass."""
_OUTPUT_CAPTURING = "transformers.utils.output_capturing"
_OUTPUT_REGISTRY = "_CAN_RECORD_REGISTRY"
"""What models of each class can return; transformers fills it when a model is built, not when it is unpickled."""
_SEARCHED_PACKAGES = ("bertology", "transformers")


class _Pickler(cloudpickle.Pickler):
    """Context variables and modules are global, and a worker has its own: they are pickled by name."""

    def reducer_override(self, obj: Any) -> Any:
        """How an object is pickled, if otherwise than by default."""
        if isinstance(obj, ContextVar) or type(obj).__name__ in _CONTEXT_VARIABLES:
            return _global_variable, _global_name(obj)
        if isinstance(obj, ModuleType) and type(obj) is not ModuleType:  # lazy and callable modules, unknown to pickle
            return import_module, (obj.__name__,)
        return super().reducer_override(obj)


def dump_value(value: Any, description: str) -> bytes:
    """The value as bytes; refused if it cannot be sent to another process."""
    stream = io.BytesIO()
    try:
        _Pickler(stream, protocol=pickle.HIGHEST_PROTOCOL).dump((_returnable_outputs(), value))
    except (TypeError, pickle.PicklingError, AttributeError) as error:
        raise Refusal(
            f"{description} cannot be sent to another process ({' '.join(str(error).split())[:200]})",
            "a model and functions that can be pickled",
            "Name the model instead of giving it in memory, or leave out the engine",
        ) from error
    return stream.getvalue()


def load_value(content: bytes) -> Any:
    """The value that `dump_value` wrote in a process of the same run."""
    outputs, value = pickle.loads(content)
    if outputs:
        getattr(import_module(_OUTPUT_CAPTURING), _OUTPUT_REGISTRY).update(outputs)
    return value


def _returnable_outputs() -> dict[str, Any]:
    """What the models of this process can return, by the name of their class."""
    return dict(getattr(sys.modules.get(_OUTPUT_CAPTURING), _OUTPUT_REGISTRY, None) or {})


def _global_variable(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def _global_name(variable: Any) -> tuple[str, str]:
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] in _SEARCHED_PACKAGES and module_name in sys.modules:
            for name, value in list(vars(module).items()):
                if value is variable:
                    return module_name, name
    raise pickle.PicklingError(f"no module has the variable {variable!r}")
