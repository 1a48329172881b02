"""The views as a Jupyter widget (anywidget), with a frame in its place where no widget can run.

A notebook that was exported to HTML loads the code of widgets from the network. Beside the widget its output has the
same page in a hidden frame, which appears if the widget has not within a few seconds: offline, or without a kernel.
"""

from __future__ import annotations

import uuid
from typing import Any

from bertology.errors import Refusal
from bertology.html import render
from bertology.views.page import asset, payload_json
from bertology.views.payload import Payload


def make_widget(payload: Payload, frame: str) -> Any:
    """A widget whose `state` can be read and set; `frame` is the HTML that shows the same page without a kernel."""
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
        identifier = traitlets.Unicode().tag(sync=True)

        def _ipython_display_(self) -> None:
            from IPython.display import HTML, display

            bundle: Any = self._repr_mimebundle_()
            data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
            display(data, metadata=metadata, raw=True)
            display(HTML(render("widget_fallback.html", identifier=self.identifier, frame=frame)))

    return Views(payload=str(payload_json(payload)), state="", identifier=uuid.uuid4().hex)
