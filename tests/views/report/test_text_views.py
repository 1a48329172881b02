"""A finding's head opens on the finding's own texts: by mouse, by keyboard, and from a permalink."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

import bertology
from bertology.analyses.run import RunInputs
from bertology.claims.claim import ClaimRun
from bertology.claims.example_texts import ExampleTexts, TextMeasurement
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.recording.recorder import record
from bertology.results.shapes import HeadGrid
from bertology.views.html_view import HtmlView
from bertology.views.payload import Payload, dequantise
from bertology.views.report.attention_view import attention_view_fragment
from bertology.views.report.page import report_page
from bertology.views.report.text_views import FindingTexts, TextViews, compact_payload, text_views
from results.example_results import estimates, result
from views.report.example_content import content, measured

RUN = ClaimRun(analysis="attention/targets")
CORPUS: Corpus = load_corpus("english", limit=40)
SHORT = [index for index, example in enumerate(CORPUS) if 6 <= len(example.segments[0].words) <= 12][:4]
GRID = result(HeadGrid(measures={"attention": estimates(4, 4)}, baselines={"b": {"attention": estimates(4, 4)}}))
READY = "html[data-ready]"


def examples(*indices: int) -> ExampleTexts:
    texts = tuple(TextMeasurement(CORPUS[index].segments[0].text, (0.9,), index) for index in indices)
    return ExampleTexts(("attention",), texts[:1], texts[1:], 16, 40, RUN)


def finding(*indices: int, model: str = "tiny") -> FindingTexts:
    inputs = RunInputs(corpus=CORPUS, encoder=load(model))
    return FindingTexts(examples(*indices), inputs, frozenset({2}))


def payloads(views: TextViews) -> dict[str, Payload]:
    found = re.findall(r'data-bertology-payload="([^"]+)">(.*?)</script>', views.html, re.S)
    return {name: Payload.model_validate(json.loads(text)) for name, text in found}


def test_a_text_of_two_findings_is_in_the_page_once() -> None:
    views = text_views({"a": finding(SHORT[0], SHORT[1]), "b": finding(SHORT[1])})
    assert dict(views.names) == {("a", SHORT[0]): "text-1", ("a", SHORT[1]): "text-2", ("b", SHORT[1]): "text-2"}
    assert [payload.title for payload in payloads(views).values()] == [CORPUS[i].segments[0].text for i in SHORT[:2]]


def test_weights_are_those_of_the_model_within_a_step() -> None:
    run = payloads(text_views({"a": finding(SHORT[0])}))["text-1"].runs[0]
    recording = record(load("tiny"), CORPUS[SHORT[0] : SHORT[0] + 1], ["attention"])
    expected = np.asarray(recording["attention"][0])
    stored = dequantise(run.quantities[0].weights)
    assert stored.shape == expected.shape and run.layer_numbers == []
    assert np.abs(stored - expected).max() <= 0.5 / 255 + 1e-6


def test_long_texts_have_only_the_layers_of_their_findings() -> None:
    payload = bertology.view("tiny", CORPUS[SHORT[0]], labels={"2-1": "a label", "1-1": "another"}).payload
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bertology.views.report.text_views.MAX_VALUES", 10)
        run = compact_payload(payload, frozenset({1})).runs[0]
        assert compact_payload(payload, frozenset()).runs[0].layer_numbers == []
    assert run.layer_numbers == [2] and [(label.layer, label.label) for label in run.labels] == [(0, "a label")]
    whole = dequantise(payload.runs[0].quantities[0].weights)
    assert np.abs(dequantise(run.quantities[0].weights)[0] - whole[1]).max() <= 0.5 / 255 + 1e-6
    assert run.focus == payload.runs[0].focus[1:2]


def test_texts_of_a_recording_need_its_attention() -> None:
    with_attention = record(load("tiny"), CORPUS, ["attention"])
    without = record(load("tiny"), CORPUS, ["hidden"])
    for recording, n_texts in ((with_attention, 1), (without, 0)):
        inputs = RunInputs(corpus=CORPUS, recording=recording)
        views = text_views({"a": FindingTexts(examples(SHORT[0]), inputs, frozenset())})
        assert len(views.names) == n_texts


def test_texts_too_long_for_the_page_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertology.views.report.text_views.MAX_TOKENS", 5)
    assert text_views({"a": finding(SHORT[0])}).names == {}


@dataclass(frozen=True)
class Report(HtmlView):
    """A finished page."""

    page: str

    @property
    def title(self) -> str:
        return "report"

    def html(self) -> str:
        return self.page


@pytest.fixture(scope="module")
def report() -> Report:
    """A finding about head 3-2 that has two texts, and one that has none."""
    texts = text_views({"with-texts": finding(SHORT[0], SHORT[1], model="mini")})
    made = content(
        claim_results=[
            measured(id="with-texts", headline="It has texts.", results=(GRID,)),
            measured(id="without-texts", headline="It has none.", results=(GRID,)),
        ],
        attention_view=attention_view_fragment(load("mini"), CORPUS, (), texts.html),
        example_texts={"with-texts": examples(SHORT[0], SHORT[1])},
        text_names=texts.names,
    )
    return Report(report_page(made))


def expect_head_on(page: Any, index: int | None, head: str = "3-2") -> None:
    """Wait until the head view shows this head with the tokens of this example, or of the sample sentence."""
    view = page.locator("[data-bertology-view]").first
    sample = next(example for example in CORPUS if 8 <= len(tokens(example)) <= 48)
    expected = tokens(sample if index is None else CORPUS[index])
    expect(view.locator(".details h2")).to_have_text(f"Head {head}")
    expect(view.locator("ol.tokens.from li bdi")).to_have_text(expected)
    expect(view.locator("h1")).to_be_in_viewport()


def tokens(example: Example) -> list[str]:
    return list(load("mini").tokenise([example.text_inputs[0]])[0].tokens)


def test_the_button_of_a_finding_opens_its_head_on_its_strongest_text(opened: Any, report: Report) -> None:
    page = opened(report, ready=READY)
    page.click("#with-texts > summary")
    button = page.locator("#with-texts .open-view")
    assert button.inner_text() == "Open head 3-2 on its strongest text"
    button.click()
    expect_head_on(page, SHORT[0])
    # Another head, then the same button again: the finding's head is back.
    page.locator("[data-bertology-view]").first.locator("[data-chip='5']").dblclick()
    expect(page.locator("[data-bertology-view]").first.locator(".details h2")).to_have_text("Head 3-5")
    page.evaluate("document.querySelector('#with-texts .open-view').click()")
    expect_head_on(page, SHORT[0])


def test_every_text_of_a_finding_can_be_opened_and_the_finding_found_again(opened: Any, report: Report) -> None:
    page = opened(report, ready=READY)
    page.click("#with-texts > summary")
    assert page.locator("#with-texts .open-text").count() == 2
    page.click("#with-texts .open-text >> nth=1")
    expect_head_on(page, SHORT[1])
    note = page.locator(".shown-text")
    expect(note).to_contain_text("a text of the finding It has texts.")
    page.click(".shown-text button")
    expect_head_on(page, None)
    page.go_back()
    expect_head_on(page, SHORT[1])
    page.click(".shown-text a")
    assert page.evaluate("location.hash") == "#with-texts"


def test_a_finding_without_texts_says_that_it_opens_the_sample_sentence(opened: Any, report: Report) -> None:
    page = opened(report, "without-texts", ready=READY)
    button = page.locator("#without-texts .open-view")
    assert button.inner_text() == "Open head 3-2 on the sample sentence"
    assert page.locator("#without-texts .open-text").count() == 0
    button.click()
    expect_head_on(page, None)


def test_the_button_works_by_keyboard_from_the_permalink_of_a_finding(opened: Any, report: Report) -> None:
    page = opened(report, "with-texts", ready=READY)
    page.focus("#with-texts > summary")
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.open-view')"):
            break
    page.keyboard.press("Enter")
    expect_head_on(page, SHORT[0])
    assert page.evaluate("document.activeElement.id") == "attention-view"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('#attention-view') !== null")


def test_the_opened_text_is_a_permalink(opened: Any, report: Report) -> None:
    page = opened(report, ready=READY)
    page.click("#with-texts > summary")
    link = page.get_attribute("#with-texts .open-text >> nth=1", "href")
    again = opened(report, link.removeprefix("#"), width=390, ready=READY)
    expect_head_on(again, SHORT[1])
    assert again.evaluate("document.documentElement.scrollWidth") <= 390
