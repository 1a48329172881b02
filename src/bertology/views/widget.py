"""The views as a Jupyter widget: the host is anywidget, an optional package."""

from __future__ import annotations

from typing import Any

from bertology.errors import Refusal
from bertology.views.page import asset, inline
from bertology.views.payload import Payload


def widget(payload: Payload) -> Any:
    """A widget with the traits `payload` and `state`, the latter in both directions."""
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise Refusal(
            "anywidget is not installed, which hosts widgets",
            "the optional packages for notebooks",
            "Install them with: pip install 'bertology[notebook]'; without them a view still shows itself in a frame",
        ) from error

    class Views(anywidget.AnyWidget):
        """The views of one payload."""

        _esm = asset("widget.js")
        payload = traitlets.Unicode().tag(sync=True)
        state = traitlets.Unicode().tag(sync=True)

    return Views(payload=inline(payload), state="")
