"""One self-contained HTML page: the program, the payload, and a policy that forbids the browser to fetch anything.

Or fragments of another page, such as the report.
"""

from __future__ import annotations

import hashlib
from functools import cache
from html import escape
from importlib import resources

from bertology.errors import Refusal
from bertology.views.payload import Payload

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
    "form-action 'none'"
)
STYLE = (
    "html{color-scheme:light dark;background:#fff}html,body{margin:0;height:100%}"
    "@media(prefers-color-scheme:dark){html{background:#16181c}}"
)
_NO_SCRIPT = "<noscript>The views are drawn with JavaScript, which is turned off.</noscript>"


def html(payload: Payload) -> str:
    """The page as text."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(_printable(payload.title))}</title><style>{STYLE}</style></head>"
        f'<body><div data-bertology-view="page"></div>{_NO_SCRIPT}'
        f'<script type="application/json" data-bertology-payload="page">{inline(payload)}</script>'
        f"{program()}</body></html>"
    )


def fragment(payload: Payload, *states: str) -> str:
    """Views inside another page, one for each state that they open with, such as "view=model", on one payload.

    They share no style, name or address with what surrounds them, and decode nothing before they come near the screen.
    The page needs `program()` once, after all of them.
    """
    text = inline(payload)
    name = hashlib.sha256(text.encode()).hexdigest()[:12]
    hosts = "".join(
        f'<div data-bertology-view="{name}" data-state="{escape(state, quote=True)}"></div>' for state in states
    )
    return f'{hosts}{_NO_SCRIPT}<script type="application/json" data-bertology-payload="{name}">{text}</script>'


def program() -> str:
    """The script that brings every view of a page to life."""
    return f"<script>{_script()}</script>"


def inline(payload: Payload) -> str:
    """JSON that may stand inside a script: no token of a text can end it, and it is plain ASCII."""
    import json

    return json.dumps(payload.model_dump(), ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")


@cache
def asset(name: str) -> str:
    """A file that Vite has built into the package."""
    file = resources.files("bertology.views") / "assets" / name
    if not file.is_file():
        raise Refusal(
            "The views of this installation were not built",
            f"the file {name} among the package's assets",
            "In a checkout run `python frontend/build.py`, which needs the npm registry once; or install a wheel",
        )
    return file.read_text("utf-8")


def _script() -> str:
    return asset("page.js").replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
