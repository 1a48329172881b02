"""One self-contained HTML page: the program, the payload, and a policy that forbids the browser to fetch anything."""

from __future__ import annotations

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


def html(payload: Payload) -> str:
    """The page as text."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(_printable(payload.title))}</title><style>{STYLE}</style></head>"
        f'<body><div id="views"></div><noscript>This page draws with JavaScript, which is turned off.</noscript>'
        f'<script type="application/json" id="payload">{inline(payload)}</script>'
        f"<script>{_script()}</script></body></html>"
    )


def frame(payload: Payload, height: int) -> str:
    """The page inside a frame of its own, for notebooks: no script of theirs meets one of ours."""
    title = escape(_printable(payload.title), quote=True)
    return (
        f'<iframe srcdoc="{escape(html(payload), quote=True)}" sandbox="allow-scripts allow-downloads allow-modals" '
        f'style="width:100%;height:{height}px;border:0" title="{title}"></iframe>'
    )


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
