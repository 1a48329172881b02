"""PyTorch, imported on first use: listing analyses or reading a corpus must not wait for it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch as torch
else:

    class _LazyModule(ModuleType):
        """A module that is imported when one of its attributes is first read."""

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module(self.__name__), name)

    torch = _LazyModule("torch")
