"""Imports on first use: PyTorch, for which listing analyses must not wait, and the functions that packages are."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch as torch
else:

    class _LazyModule(ModuleType):
        """A module that is imported when one of its attributes is first read."""

        imported: ModuleType | None = None

        def __getattr__(self, name: str) -> Any:
            # The import system would be asked thousands of times in a small analysis.
            if self.imported is None:
                self.imported = import_module(self.__name__)
            return getattr(self.imported, name)

    torch = _LazyModule("torch")


def make_callable(package: str, module: str, function: str = "") -> None:
    """Let a package be called like a function of a module in it, which has the package's name unless named here.

    `bertology.corpus(...)` is such a call: the import system sets `bertology.corpus` to the package of that name.
    """

    class CallablePackage(ModuleType):
        def __call__(self, *arguments: Any, **options: Any) -> Any:
            from bertology.public_functions import public_function

            called = getattr(import_module(module), function or package.rpartition(".")[2])
            return public_function(called)(*arguments, **options)

    sys.modules[package].__class__ = CallablePackage
