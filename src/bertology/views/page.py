"""The HTML of views: a page with the front-end and its data, or fragments of another page, such as the report."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources

from markupsafe import Markup

from bertology.errors import Refusal
from bertology.html import inline_json, render, render_fragment
from bertology.results.palette import PALETTES
from bertology.views.payload import Payload


def view_page(payload: Payload) -> str:
    """A self-contained page; its policy forbids the browser to load anything."""
    return render(
        "view.html",
        title=payload.title.encode("utf-8", "replace").decode("utf-8"),
        palettes=PALETTES,
        payload=payload_json(payload),
        script=page_script(),
    )


def fragment(payload: Payload, *states: str) -> Markup:
    """Views inside another page, one per initial state, such as "view=model", all of the same data.

    They share no style, names or address with the page, and decode their data when they come near the screen. The page
    needs `page_script` once, after all of them. It shows another state by setting `data-state` of the element and
    dispatching a `bertology-view-state` event on it; with `data-bertology-view` set too, other data (`payload_script`).
    """
    name = hashlib.sha256(payload_json(payload).encode()).hexdigest()[:12]
    return render_fragment("view_fragment.html", name=name, states=states, payload=payload_script(payload, name))


def payload_script(payload: Payload, name: str) -> Markup:
    """Data that a view of the page shows when its `data-bertology-view` is set to this name."""
    script = '<script type="application/json" data-bertology-payload="{}">{}</script>\n'
    return Markup(script).format(name, payload_json(payload))


def page_script() -> Markup:
    """The script that starts every view of a page."""
    return Markup("<script>{}</script>").format(Markup(_escape_script(asset("page.js"))))


def payload_json(payload: Payload) -> Markup:
    """The data as JSON for the inside of a script element."""
    return inline_json(payload.model_dump())


@cache
def asset(name: str) -> str:
    """A file of the built front-end."""
    file = resources.files("bertology.views") / "assets" / name
    if not file.is_file():
        raise Refusal(
            "The front-end of the views has not been built",
            f"the file {name} in the package",
            "In a checkout run `python frontend/build.py`, which needs the npm registry once; or install a wheel",
        )
    return file.read_text("utf-8")


def _escape_script(code: str) -> str:
    return code.replace("</script", "<\\/script").replace("<!--", "<\\!--")
