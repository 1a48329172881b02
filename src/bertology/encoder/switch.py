"""Which attention a model uses, switched for the length of a forward pass and then given back."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

_switching = threading.Lock()
_switched: dict[int, tuple[int, str | None]] = {}


@contextmanager
def attending_by(implementation: str, config: Any) -> Generator[None]:
    """Attend by a registered implementation; the last pass to leave gives the model its own back.

    Counted by configuration: two models made from one share its implementation, and passes may run side by side.
    """
    with _switching:
        users, own = _switched.get(id(config), (0, config._attn_implementation))
        _switched[id(config)] = users + 1, own
        config._attn_implementation = implementation
    try:
        yield
    finally:
        with _switching:
            users, own = _switched.pop(id(config))
            if users > 1:
                _switched[id(config)] = users - 1, own
            else:
                config._attn_implementation = own
