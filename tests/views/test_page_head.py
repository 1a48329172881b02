"""The head view in a browser: what it opens on, lines, small pictures, strips, numbers, tour and shortcuts."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import expect

import bertology
from bertology.results.palette import PALETTES
from bertology.views import payload
from bertology.views.page import fragment, page_script
from bertology.views.view import View
from browsing import wait_until
from views.page_reader import copied, exported, n_colours, open_export_menu, weights_on

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]
TEXT = "I went to the store. At the store, I bought fresh strawberries."


@cache
def shown() -> View:
    return bertology.view("mini", TEXT)


@cache
def attention() -> NDArray[np.float32]:
    """(layer, head, from, to); exact, as the text is short."""
    return payload.dequantise(shown().payload.runs[0].quantities[0].weights)


def test_the_page_opens_on_the_most_clearly_labelled_head(opened: Any) -> None:
    page = opened(shown())
    clearest = max(shown().payload.runs[0].labels, key=lambda label: label.effect or 0)
    name = f"{clearest.layer + 1}-{clearest.head + 1}"
    assert page.inner_text(".details h2") == f"Head {name}"
    assert clearest.label in page.inner_text(".details .labels")
    assert page.locator(".chip[aria-pressed=true]").count() == 1
    assert page.input_value("[data-choice='Special tokens']") == "fade"
    assert page.input_value("[data-choice=Weights]") == "mass"
    assert "of 64 heads are labelled" in page.inner_text(".labelling summary")
    page.click(".labelling summary")
    assert "A label needs an interval above those of all baselines" in page.inner_text(".labelling")


def test_without_labels_it_opens_on_the_most_focused_head() -> None:
    weights = np.full((2, 3, 5, 5), 0.2)
    weights[1, 2] = np.roll(np.eye(5), 1, 1)
    tokens = ["[CLS]", "a", "b", "c", "[SEP]"]
    assert bertology.head_view(list(weights), tokens).payload.state == "view=head&layer=2&heads=3"
    assert bertology.head_view(list(weights), tokens, layer=0).payload.state.startswith("view=head&layer=1&heads=")


@pytest.mark.parametrize("mass", [0.5, 0.8])
def test_the_fewest_weights_that_hold_the_mass_are_kept(opened: Any, mass: float) -> None:
    page = opened(shown(), f"layer=5&heads=2&mass={mass}")
    kept, weights = weights_on(page)["5-2"], attention()[4, 1]
    for row, exact in zip(kept, weights, strict=True):
        descending = np.sort(exact)[::-1].astype(np.float64)
        n_needed = int(np.argmax(descending.cumsum() >= mass * descending.sum() - 1e-6)) + 1
        assert sorted(row[np.isfinite(row)]) == pytest.approx(sorted(descending[:n_needed]), rel=1e-6)
    share = float(page.inner_text(".shown b").split()[0])
    assert share == pytest.approx(100 * np.nansum(kept) / weights.sum(), abs=0.06)


def test_small_pictures_of_the_layers_heads_switch_the_head(opened: Any) -> None:
    page = opened(shown(), "layer=3&heads=3")
    assert page.locator("[data-multiple]").count() == 8
    assert "previous word" in page.inner_text("[data-multiple='8']") and "%" in page.inner_text("[data-multiple='8']")
    page.wait_for_timeout(400)  # pictures are drawn one after the other
    assert all(n_colours(page, f"[data-multiple='{head}'] canvas") > 3 for head in (1, 8))
    page.click("[data-multiple='8']")
    expect(page.locator(".details h2")).to_have_text("Head 3-8")
    page.focus("[data-multiple='8']")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.locator(".details h2")).to_have_text("Head 3-7")


def test_a_hovered_token_has_a_strip_of_all_heads_of_the_layer(opened: Any) -> None:
    page = opened(shown(), "layer=4&heads=4")
    page.hover("ol.from [data-position='14']")
    titles = page.locator("ol.to .strip").evaluate_all("all => all.map(strip => strip.title)")
    shown_weights = [[float(line.split(": ")[1]) for line in title.split("\n")] for title in titles]
    np.testing.assert_allclose(np.array(shown_weights), attention()[3, :, 14].T, rtol=1e-5)
    own = page.get_attribute("ol.from .strip.own", "title").split("\n")
    np.testing.assert_allclose([float(line.split(": ")[1]) for line in own], attention()[3, :, 14].max(-1), rtol=1e-5)
    page.hover("ol.to [data-position='2']")
    assert page.locator("ol.from .strip").count() == len(attention()[0, 0])


def line_strokes(svg: str) -> list[tuple[str, float]]:
    paths = [element for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("path")]
    return [(path.get("stroke") or "", float(path.get("stroke-width") or 0)) for path in paths]


def test_colours_of_heads_do_not_mix_and_widths_do_not_collapse(opened: Any) -> None:
    page = opened(shown(), "layer=1&heads=1,2,3,4,5,6,7,8&keep=all&special=show")
    assert re.search(r"The [\d,]+ strongest of [\d,]+ lines .* [\d,]+ are not", page.inner_text(".hint"))
    svg = exported(page, "svg")
    assert "stroke-opacity" not in svg
    strokes = line_strokes(svg)[:-3]  # without those of the legend
    white = np.array([255.0, 255, 255])
    heads = [np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) - white for colour in PALETTES["light"].series]
    for colour, _ in strokes:
        tint = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) - white
        parts = [tint @ head / (head @ head) for head in heads]
        distances = [np.abs(tint - part * head).max() for part, head in zip(parts, heads, strict=True)]
        assert min(distances) <= 1, f"{colour} is a tint of no head"
    widths = [width for _, width in strokes]
    assert min(widths) >= 1 and max(widths) >= 5 and widths == sorted(widths)


def test_lines_of_special_tokens_are_faded(opened: Any) -> None:
    page = opened(shown(), "layer=5&heads=3")
    grey = [colour for colour, _ in line_strokes(exported(page, "svg")) if is_grey(colour)]
    page.select_option("[data-choice='Special tokens']", "show")
    page.wait_for_selector(".shown:not(:has-text('faded'))")
    assert grey and not [colour for colour, _ in line_strokes(exported(page, "svg")) if is_grey(colour)]


def is_grey(colour: str) -> bool:
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return max(parts) - min(parts) < 20


def test_a_column_of_numbers_has_one_format_and_repeated_tokens_their_index(opened: Any) -> None:
    page = opened(shown(), "layer=4&heads=4&token=14")
    cells = page.locator(".details td").all_inner_texts()
    assert all(re.fullmatch(r"\d\.\d{3}|< 0\.001", cell) for cell in cells)
    names = page.locator(".details tbody th").all_inner_texts()
    assert {"4 the", "8 the", "5 store", "9 store"} <= set(names)
    exact = page.locator(".details td").first.get_attribute("title")
    assert float(exact) == pytest.approx(attention()[3, 3, 14].max(), rel=1e-6)


def test_stored_steps_are_said_and_never_shown_as_zero(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("MAX_EXACT_TOKENS", "MAX_FINE_VALUES", "MAX_COARSE_VALUES"):
        monkeypatch.setattr(payload, limit, 0)
    page = opened(bertology.view("mini", TEXT), "layer=3&heads=8")
    assert "stored in steps of 1/128 of the largest weight of each row" in page.inner_text(".about")
    page.hover("ol.from [data-position='5']")
    numbers = page.locator("ol.to .number").all_inner_texts()
    assert "< 0.008" in numbers and not {"0", "0.000", "< 0"} & set(numbers)


def test_unknown_tokens_show_their_source(opened: Any) -> None:
    page = opened(bertology.view("mini", "I ❤ 🍓 much"))
    assert page.locator("ol.from .unknown").all_inner_texts() == ["[UNK]\n❤", "[UNK]\n🍓"]
    assert "not in the model's vocabulary" in page.get_attribute("ol.from .unknown >> nth=0", "title")
    assert "🍓" in exported(page, "csv") and "🍓" in exported(page, "json")
    assert "[UNK] 🍓" in "".join(ElementTree.fromstring(exported(page, "svg")).itertext())


def test_text_in_any_script_stays_in_its_row(opened: Any) -> None:
    tokens = ["\u202eabc", "\u0301\u0301\u0301\u0301\u0301e", "שלום", "汉字", "a\tb", "a\nb", "\u200bx", "y" * 300]
    weights = np.full((1, 2, len(tokens), len(tokens)), 1 / len(tokens))
    page = opened(bertology.head_view(list(weights), tokens), "layer=1&heads=1&keep=all")
    texts = page.locator("ol.from bdi").all_text_contents()
    assert texts[0] == "⟨202E⟩abc" and texts[1].startswith("◌") and texts[2:4] == ["שלום", "汉字"]
    assert texts[4:7] == ["a␉b", "a␊b", "⟨200B⟩x"] and len(texts[7]) == 60
    drawing = ElementTree.fromstring(exported(page, "svg"))
    (whole, *_) = [element for element in drawing.iter() if element.tag.endswith("title")]
    assert whole.text == "y" * 300 and 3 < len(whole.tail or "") < 60
    assert "y" * 300 in exported(page, "csv")


def test_the_export_of_a_pinned_token_has_its_highlight_numbers_and_caption(opened: Any) -> None:
    page = opened(shown(), "layer=4&heads=4&token=14")
    drawing = ElementTree.fromstring(exported(page, "svg"))
    bold = [element.text for element in drawing.iter() if element.get("font-weight") == "600"]
    assert bold == ["straw"]
    texts = [element.text for element in drawing.iter() if element.tag.endswith("text")]
    assert f"{attention()[3, 3, 14].max():.3f}" in texts and "weight" in texts
    caption = copied(page, "caption")
    kept = weights_on(page)["4-4"][14]
    assert caption.startswith("Attention in head 4-4 (object → verb 89\u00a0%) of mini on “I went to the store.")
    share = 100 * float(np.nansum(kept))
    assert f"Lines from “straw” (token 14): {np.isfinite(kept).sum()}, with {share:.1f} % of the weight" in caption
    assert "@inproceedings{voita2019," in copied(page, "bibtex")


def test_the_copied_command_remakes_the_figure(opened: Any, tmp_path: Path) -> None:
    import shlex

    from typer.testing import CliRunner

    from bertology.cli.main import app

    page = opened(shown(), "layer=4&heads=4&token=14")
    command = copied(page, "command")
    words = shlex.split(command)
    assert words[:2] == ["bertology", "view"]
    target = tmp_path / "again.html"
    result = CliRunner().invoke(app, [*words[1:], "-o", str(target)])
    assert result.exit_code == 0, result.output
    page.goto(target.as_uri())
    page.wait_for_selector(".views[data-ready=head]")
    assert page.locator("ol.from [aria-pressed=true] bdi").inner_text() == "straw"
    assert page.locator(".details h2").last.inner_text() == "Head 4-4"


def test_the_export_menu_closes(opened: Any) -> None:
    page = opened(shown())
    menu = page.locator(".export .menu")
    for close in (
        lambda: page.keyboard.press("Escape"),
        lambda: page.click("h1"),
        lambda: page.keyboard.press("3"),
    ):
        open_export_menu(page)
        expect(menu).to_have_count(1)
        close()
        expect(menu).to_have_count(0)


def test_the_tour_drives_the_view(opened: Any) -> None:
    page = opened(shown())
    page.click("[data-choice=Tour]")
    titles: list[str] = []
    for step, state in enumerate(("", "token=", "", "layer=4&heads=4", "", "view=model")):
        page.wait_for_selector(f".tour .step:has-text('{step + 1} of 6')")
        page.wait_for_selector(".toured")
        wait_until(page, f"location.hash.includes({state!r})")
        titles.append(page.inner_text(".tour h2"))
        if step < 5:
            page.keyboard.press("ArrowRight")
    headings = re.findall(r"^## \d\. (.+)$", (ROOT / "docs" / "first-head.md").read_text("utf-8"), re.MULTILINE)
    assert titles == headings
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector(".tour .step:has-text('5 of 6')")
    page.keyboard.press("Escape")
    expect(page.locator(".tour")).to_have_count(0)
    expect(page.locator(".toured")).to_have_count(0)


def test_shortcuts_work_and_are_listed(opened: Any) -> None:
    page = opened(shown(), "layer=3&heads=3")
    page.keyboard.press("?")
    expect(page.locator(".help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".help")).to_have_count(0)
    for key, heading in (("]", "Head 3-4"), (".", "Head 4-4"), ("[", "Head 4-3"), (",", "Head 3-3")):
        page.keyboard.press(key)
        expect(page.locator(".details h2")).to_have_text(heading)
    page.keyboard.press("a")
    expect(page.locator(".chip[aria-pressed=true]")).to_have_count(8)
    page.keyboard.press("3")
    page.wait_for_selector(".views[data-ready=matrix]")


def test_the_page_around_a_view_can_set_its_state(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    views = fragment(shown().payload, "view=head", "view=matrix")
    file.write_text(f"<!doctype html><meta charset=utf-8><p>text</p>{views}{page_script()}", "utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    page.wait_for_selector(".views[data-ready=head]")
    page.evaluate("dispatchEvent(new CustomEvent('bertology-view-state', { detail: 'layer=4&heads=4&token=14' }))")
    page.wait_for_selector(".views[data-ready=head] .details h2:has-text('from straw')")
    page.locator("[data-bertology-view] >> nth=1").scroll_into_view_if_needed()
    page.wait_for_selector(".views[data-ready=matrix] [data-choice=Layer]")
    assert page.locator(".views[data-ready=matrix] [data-choice=Layer]").input_value() == "3"
    page.keyboard.press("3")
    assert page.locator(".views[data-ready=head]").count() == 1, "letters belong to the page around the views"
    assert page.evaluate("location.hash") == ""
    page.close()
