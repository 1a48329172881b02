"""Formulas as MathML, written when the site is built: browsers show it without a script, a font or a network."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\(?:\(|\[)(.*?)\\(?:\)|\])</\1>', re.DOTALL)
_SIZES = re.compile(r"\\[bB]igg?[lrm]?(?![a-zA-Z])")


def on_page_content(html: str, **_: Any) -> str:
    """The page with MathML in the place of the TeX that arithmatex marks."""
    return _FORMULA.sub(_as_mathml, html)


def mathml(tex: str, display: str = "inline") -> str:
    """The formula as MathML; a command that is not understood is an error."""
    plain = _SIZES.sub("", tex.strip()).replace(r"\arg", r"\operatorname{arg}")  # browsers stretch brackets themselves
    converted = convert(plain, display=display)
    unknown = re.search(r">\s*(\\[a-zA-Z]+|&#x0005C;\w+)\s*<", converted)
    if unknown:
        raise ValueError(f"unknown command {unknown[1]} in the formula {tex.strip()}")
    return converted


def _as_mathml(match: re.Match[str]) -> str:
    tag, tex = match[1], unescape(match[2])
    if tag == "div":
        return f'<div class="formula">{mathml(tex, "block")}</div>'
    return mathml(tex)
