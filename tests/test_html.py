"""HTML from templates: everything is escaped."""

from __future__ import annotations

import json
from pathlib import Path

import bertology
from bertology.html import format_code, inline_json, keep_ranges_together, render

TEMPLATES = Path(bertology.__file__).parent / "templates"
SERVED = {"api.html", "workbench.html", "workbench_app.html"}


def test_templates_escape_their_values() -> None:
    page = render("frame.html", page='<p title="x">', title='"<b>', height=3, min_height=1, max_height=9)
    assert 'srcdoc="&lt;p title=&#34;x&#34;&gt;"' in page and 'title="&#34;&lt;b&gt;"' in page


def test_names_in_backticks_are_code_and_the_rest_is_escaped() -> None:
    assert format_code("see `a<b` & c") == "see <code>a&lt;b</code> &amp; c"


def test_heads_and_ranges_are_kept_on_one_line() -> None:
    assert keep_ranges_together("head 3-3 <") == 'head <span class="range">3-3</span> &lt;'
    assert keep_ranges_together("88 % [83, 93] of [CLS]") == '88&nbsp;% <span class="range">[83, 93]</span> of [CLS]'


def test_json_cannot_end_a_script() -> None:
    text = inline_json({"a": "</script><!-- é"})
    assert "<" not in text and text.isascii() and json.loads(text) == {"a": "</script><!-- é"}


def test_every_page_that_is_a_file_forbids_requests() -> None:
    """The pages of the server have the policy in the headers of their answers."""
    templates = {file.name: file.read_text("utf-8") for file in TEMPLATES.glob("*.html")}
    pages = {name: text for name, text in templates.items() if text.lower().startswith("<!doctype")}
    assert {"report.html", "view.html", "atlas.html", "figure.html", "pins.html"} <= pages.keys()
    policy = '<meta http-equiv="Content-Security-Policy" content="default-src \'none\';'
    assert {name for name, text in pages.items() if policy not in text} == SERVED
