"""HTML pages from the Jinja2 templates of the package; everything that is not `Markup` is escaped."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape


def render(template: str, **context: Any) -> str:
    """A template of `bertology/templates` filled with values."""
    return _environment().get_template(template).render(context)


def render_fragment(template: str, **context: Any) -> Markup:
    """A template whose result is put into another page."""
    return Markup(render(template, **context))


def inline_json(value: object) -> Markup:
    """JSON for the inside of a script element, in ASCII: no text in it can end the element."""
    return Markup(json.dumps(value, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c"))


def format_code(text: str) -> Markup:
    """The text with `names` in backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def keep_ranges_together(text: str) -> Markup:
    """The text without line breaks inside heads and ranges such as 4-8, intervals, and numbers in percent."""
    ranges = re.sub(r"\d+-\d+|\[[-\d., ]+\]", r'<span class="range">\g<0></span>', str(escape(text)))
    return Markup(re.sub(r"(?<=\d) (?=%)", "&nbsp;", ranges))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("bertology"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"code": format_code, "ranges": keep_ranges_together}
    return environment
