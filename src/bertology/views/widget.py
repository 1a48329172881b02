"""The views as a Jupyter widget, with the optional package anywidget."""

from __future__ import annotations

from typing import Any

from bertology.errors import Refusal
from bertology.views.page import asset, payload_json
from bertology.views.payload import Payload


def widget(payload: Payload) -> Any:
    """A widget with the traits `payload` and `state`; `state` can be read and set."""
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise Refusal(
            "anywidget is not installed, which widgets need",
            "the optional packages for notebooks",
            "Install them with: pip install 'bertology[notebook]'; without them a notebook shows a view in a frame",
        ) from error

    class Views(anywidget.AnyWidget):
        """The views of one payload."""

        _esm = asset("widget.js")
        payload = traitlets.Unicode().tag(sync=True)
        state = traitlets.Unicode().tag(sync=True)

    return Views(payload=str(payload_json(payload)), state="")
