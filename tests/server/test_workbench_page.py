"""The page of the workbench in a browser, against a real server: what a person does, and what the page shows then."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote

import pytest

from accessibility import accessibility_violations
from serving import RealServer, prefix_proxy, real_server, write_sample

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

READY = ".workbench[data-current='true'] .picture:not([data-ready=''])"
TEXT = "The old man and the door of the house."
EXPECTED = re.compile(r"status of (409|422|503)")
"""Answers that the page expects: a newer request, a text that cannot be read, a server that is busy."""

LOAD_MILLISECONDS, JOB_MILLISECONDS = 120_000, 240_000
"""The server and each job load torch; on a busy machine that takes more than a minute."""

Open = Callable[..., "Page"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, built_frontend: None) -> Generator[RealServer]:
    """A server with the model `tiny`, an untrained one to compare it with, 40 texts, and another corpus of 7."""
    folder: Path = tmp_path_factory.mktemp("workbench")
    corpora = ("--corpus", write_sample(folder, 40), "--allow-corpus", write_sample(folder, 7, "few"))
    with real_server(folder / "home", "--against", "random:tiny", *corpora) as running:
        yield running


@pytest.fixture
def opened(browser: Browser, server: RealServer) -> Generator[Open]:
    """Opens the page and returns it: `opened("head=2-1", width=390)`."""
    problems: list[str] = []
    contexts: list[BrowserContext] = []

    def open_page(
        hash: str = "", *, width: int = 1440, dark: bool = False, wait: bool = True, at: str = server.address
    ) -> Page:
        scheme = "dark" if dark else "light"
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True
        )
        context.set_default_timeout(30_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: problems.append(m.text) if not EXPECTED.search(m.text) else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(f"{at}#{hash}" if hash else at)
        if wait:
            page.wait_for_selector(READY, timeout=LOAD_MILLISECONDS)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not problems


def address(page: Page) -> dict[str, str]:
    """The state in the address."""
    return {name: values[0] for name, values in parse_qs(page.url.partition("#")[2], keep_blank_values=True).items()}


def texts(page: Page, selector: str) -> list[str]:
    """The texts of all elements."""
    return [text.strip() for text in page.locator(selector).all_inner_texts()]


def shown_tokens(page: Page) -> list[str]:
    """The tokens that attend in the picture."""
    page.wait_for_selector(READY)
    return texts(page, ".tokens.from button bdi")


def exact_values(page: Page, column: int) -> list[float]:
    """All digits of a column of the first predictions."""
    cells = page.locator(f".predictions tbody >> nth=0 >> td:nth-of-type({column})")
    return [float(cell.get_attribute("title") or "nan") for cell in cells.all()]


def test_the_page_is_there_before_the_model(opened: Open) -> None:
    page = opened(wait=False)
    assert "tiny" in page.locator(".loading").inner_text()
    page.wait_for_selector(READY, timeout=LOAD_MILLISECONDS)
    assert address(page)["head"] == "2-4", "the head of the largest numbers up to 4-4"
    assert "token=" not in page.url


def test_typing_shows_the_text_and_choices_are_steps_of_the_back_button(opened: Open) -> None:
    page = opened()
    page.get_by_role("textbox", name="Text", exact=True).fill("")
    page.get_by_role("textbox", name="Text", exact=True).press_sequentially(TEXT, delay=5)
    page.wait_for_selector(f"{READY}[data-shown*='of the house.']")
    assert shown_tokens(page) == [
        "[CLS]",
        "the",
        "old",
        "man",
        "and",
        "the",
        "door",
        "of",
        "the",
        "house",
        ".",
        "[SEP]",
    ]
    assert address(page)["text"] == TEXT
    page.click("[data-head='1-2']")
    page.wait_for_selector(".head-card[data-head='1-2']")
    page.click("[data-view='matrix']")
    page.wait_for_selector(".picture.matrix")
    page.go_back()
    page.wait_for_selector(".picture.head")
    page.go_back()
    page.wait_for_selector("[data-head='2-4'][aria-pressed='true']")
    assert address(page)["text"] == TEXT, "typing is no step of its own"
    assert "2 of 8 heads looked at" in page.locator("[data-counter]").inner_text()
    page.reload()
    assert shown_tokens(page)[1] == "the" and page.input_value(".text") == TEXT


def test_a_token_is_masked_replaced_and_deleted_by_keyboard(opened: Open) -> None:
    page = opened(f"text={quote(TEXT)}&head=2-1")
    page.focus("[data-token='3']")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")  # the first of the menu: mask
    page.wait_for_selector("[data-token='3'].edited.mask")
    page.wait_for_selector(f"{READY}[data-shown*='mask']")
    assert shown_tokens(page)[3] == "[MASK]"
    page.wait_for_selector(".predictions caption")
    assert texts(page, ".predictions caption")[0] == "Masked token"
    probabilities = [float(text) for text in texts(page, ".predictions tbody td:last-child")]
    assert len(probabilities) >= 5 and probabilities[:5] == sorted(probabilities[:5], reverse=True)
    page.click("[data-token='6']")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # delete
    page.click("[data-token='9']")
    page.fill("[aria-label='Replace house by']", "garden")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"{READY}[data-shown*='garden']")
    assert shown_tokens(page)[:8] == ["[CLS]", "the", "old", "[MASK]", "and", "the", "of", "the"]
    assert "house" not in shown_tokens(page)
    assert address(page)["edits"] == "3m,6d,9r:garden"
    page.reload()
    page.wait_for_selector("[data-token='6'].edited.delete")
    page.click("[data-token='6']")
    page.click("[data-do='restore']")
    page.wait_for_selector(f"{READY}[data-shown*='garden']")
    assert address(page)["edits"] == "3m,9r:garden"


def test_second_text_and_gallery(opened: Open) -> None:
    page = opened(f"text={quote(TEXT)}&head=2-1")
    page.click("[data-do='second']")
    page.fill("[aria-label='Second text']", "It was red.")
    page.wait_for_selector(f"{READY}[data-shown*='It was red.']")
    assert shown_tokens(page).count("[SEP]") == 2
    page.select_option("[aria-label='Examples']", index=2)
    page.wait_for_selector(f"{READY}[data-shown*='cabinet']")
    assert "cabinet" in page.input_value(".text") and not page.is_visible("[aria-label='Second text']")


def test_all_views_and_quantities_are_drawn(opened: Open) -> None:
    page = opened(f"text={quote(TEXT)}&head=2-1")
    for view, section in (
        ("matrix", "Matrix view"),
        ("neuron", "Neuron view"),
        ("model", "Model view"),
        ("head", "Head view"),
    ):
        page.click(f"[data-view='{view}']")
        page.wait_for_selector(f"section[aria-label='{section}']")
    for quantity in ("norm", "gradient", "rollout"):
        page.select_option("[data-choice='Quantity']", quantity)
        page.wait_for_selector(f"{READY}[data-shown*='{'null' if quantity == 'rollout' else quantity}']")
    page.wait_for_selector(".head-view canvas[aria-label*='rollout']")
    page.hover(".tokens.from button >> nth=3")
    assert "One text." in page.locator(".sentence").inner_text()


def test_a_head_is_removed_beside_a_control_and_the_change_is_undone(opened: Open) -> None:
    masked = TEXT.replace("door", "[MASK]")
    page = opened(f"text={quote(masked)}&head=2-1")
    before = exact_values(page, 2)
    page.keyboard.press("x")
    page.wait_for_selector(".predictions thead")
    assert texts(page, ".predictions thead >> nth=0 >> th")[1:] == ["before", "after", "control"]
    columns = [exact_values(page, column) for column in (2, 3, 4)]
    assert columns[0] == before, "before is what was predicted"
    assert columns[1] != before and columns[2] != before and columns[1] != columns[2], "each head does something"
    note = page.locator(".predictions .note").first.inner_text()
    assert re.fullmatch(r"Control: 2-[234] off, chosen at random\.", note)
    assert page.locator(".cells [data-head='2-1']").get_attribute("class") == "removed"
    page.click("[data-do='layer-off']")
    page.wait_for_selector("text=Layer 2 is off")
    page.keyboard.press("u")
    page.keyboard.press("u")
    page.wait_for_selector("text=Nothing: the model as it is.")
    assert "off" not in address(page) and "layersoff" not in address(page)
    page.select_option("[aria-label='Change']", "uniform")
    page.click("[data-do='change-head']")
    page.wait_for_selector("[data-do='ask-corpus']")
    page.click("[data-do='layers']")
    page.wait_for_selector(".readings tbody tr >> nth=2")
    assert texts(page, ".readings tbody th") == ["embeddings", "layer 1", "layer 2"]
    page.click("[data-do='ask-corpus']")
    page.click("[data-panel='jobs']")
    job = page.locator("[data-title='interventions/head_ablation']").first
    assert "ablation uniform" in job.inner_text() and "head_sets 2-1" in job.inner_text()
    job.locator("[data-do='cancel']").click()
    page.wait_for_selector("[data-title='interventions/head_ablation'][data-job='cancelled']")
    job.locator("[data-do='remove']").click()
    page.wait_for_selector("[data-title='interventions/head_ablation']", state="detached")


def test_the_head_card_offers_and_shows_results_of_jobs(opened: Open) -> None:
    page = opened(f"text={quote(TEXT)}&head=2-1")
    page.click("[data-missing='attention/entropy']")
    page.click("[data-missing='links']")
    page.wait_for_selector(".facts dt:has-text('entropy')", timeout=JOB_MILLISECONDS)
    number = page.locator(".facts dd").first.inner_text()
    assert re.search(r"n = [\d,]+ · \d of 8", number), number
    page.wait_for_selector(".histogram", timeout=JOB_MILLISECONDS)
    assert "chance" in (page.locator(".bars").first.get_attribute("aria-label") or "")
    assert page.locator(".corpus-lines li").count() == 10
    page.click("[data-examples='random']")
    assert page.locator(".corpus-lines li").count() == 10
    corpus_measures = page.locator("[data-choice='Colour'] optgroup[label^='attention/entropy'] option")
    page.select_option("[data-choice='Colour']", label=corpus_measures.first.inner_text())
    page.locator(".corpus-line").first.click()
    page.wait_for_selector(f"{READY}[data-shown*='example']")
    page.reload()
    page.click("[data-panel='jobs']")
    done = page.locator("[data-title='attention/entropy'][data-job='done']")
    done.locator("[data-do='show-result']").click()
    image = done.locator("img")
    image.wait_for()
    page.wait_for_load_state("networkidle")
    assert image.evaluate("image => image.naturalWidth") > 100
    page.wait_for_selector(".result pre")
    assert texts(page, ".result pre")[0].startswith("bertology run attention/entropy")


def test_search_counts_beside_chance(opened: Open) -> None:
    page = opened(f"text={quote(TEXT)}&head=2-1")
    page.keyboard.press("/")
    page.fill("[data-choice='Query']", "2-1 * -> * > 0.1")
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-do='index-links'], .counts")
    if page.is_visible("[data-do='index-links']"):
        page.click("[data-do='index-links']")
    counts = page.locator(".counts").first
    counts.wait_for(timeout=JOB_MILLISECONDS)
    assert re.search(r"[\d,]+ of [\d,]+ links of 2-1 .* chance [\d.]+ %", counts.inner_text())
    assert address(page)["query"] == "2-1 * -> * > 0.1"
    page.select_option("[data-choice='Token']", label="door")
    page.click("[data-do='neighbours']")
    page.click("[data-do='index-states']")
    page.wait_for_selector("[data-job='running'] progress, [data-job='queued']")
    page.wait_for_selector("text=Nearest to “door”", timeout=JOB_MILLISECONDS)
    assert "random words have a cosine of" in page.locator(".counts").last.inner_text()


def test_what_is_refused_stays_until_it_is_dismissed(opened: Open) -> None:
    page = opened(f"text={quote(TEXT)}&head=2-1&panel=jobs")
    page.click(".jobs summary")
    page.fill("[data-option='seed']", "no number")
    page.click(".jobs button[type='submit']")
    page.wait_for_selector("[role='alert']")
    page.click("[data-panel='card']")
    assert "seed" in page.locator("[role='alert'] p").inner_text()
    page.click("[data-do='dismiss']")
    assert page.locator("[role='alert']").count() == 0


def test_the_corpus_is_searched_and_a_text_opened(opened: Open) -> None:
    page = opened(f"text={quote(TEXT)}&head=2-1&panel=corpus")
    page.wait_for_selector("[data-example='19']")
    total = re.fullmatch(r"(\d+) of (\d+) texts\.", page.locator(".counts").inner_text())
    assert total is not None and total[1] == total[2]
    page.fill("[data-choice='Tag']", "PROPN")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=words fit")
    first = page.locator("[data-example]").first
    matched = first.locator("b").first.inner_text().strip()
    assert matched[0].isupper()
    first.click()
    page.wait_for_selector(f"{READY}[data-shown*='example']")
    assert matched in page.input_value(".text")
    assert page.locator(".arcs").count() > 0, "a text of the corpus has its dependency arcs"


def test_another_corpus_is_followed_by_every_panel(opened: Open) -> None:
    page = opened(f"text={quote(TEXT)}&head=2-1&panel=corpus")
    page.wait_for_selector(".counts:has-text('40 of 40 texts')")
    page.select_option("[data-choice='Corpus']", "few.conllu")
    page.wait_for_selector(".counts:has-text('7 of 7 texts')")
    assert address(page)["corpus"] == "few.conllu" and address(page)["text"] == TEXT
    page.locator("[data-example='6']").click()
    page.wait_for_selector(f"{READY}[data-shown*='few.conllu']")
    page.click("[data-panel='card']")
    page.wait_for_selector(".head-card:has-text('Over few.conllu')")
    page.click("[data-missing='attention/entropy']")
    page.click("[data-panel='jobs']")
    page.wait_for_selector("[data-title='attention/entropy']:has-text('on few.conllu')")
    page.keyboard.press("/")
    page.fill("[data-choice='Query']", "2-1 * -> * > 0.1")
    page.keyboard.press("Enter")
    page.click("[data-do='index-links']")
    page.wait_for_selector(".search [data-title='index of links']:has-text('on few.conllu')")
    page.wait_for_selector(".counts:has-text('links of 2-1')", timeout=JOB_MILLISECONDS)
    assert re.search(r"of [\d,]+ pairs that fit", page.locator(".search").inner_text())
    page.click("[data-panel='card']")
    page.wait_for_selector(".facts dd:has-text('n = 7')", timeout=JOB_MILLISECONDS)
    page.reload()
    page.wait_for_selector(f"{READY}[data-shown*='few.conllu']")
    assert page.locator("[data-choice='Corpus']").input_value() == "few.conllu"
    page.select_option("[data-choice='Corpus']", "sample.conllu")
    page.wait_for_selector(".head-card:has-text('Over sample.conllu')")
    assert address(page)["example"] == "0", "a text of the other corpus is not one of this"
    page.go_back()
    page.wait_for_selector(".head-card:has-text('Over few.conllu')")


def test_what_the_server_does_not_have_is_told(opened: Open) -> None:
    page = opened(f"text={quote(TEXT)}&head=2-1&model=huge&corpus=nowhere")
    problem = page.locator("[role='alert'] p").first.inner_text()
    assert "the model huge and the corpus nowhere" in problem and "few.conllu" in problem
    assert "model" not in address(page) and address(page)["text"] == TEXT


def test_everything_works_behind_a_path_prefix(opened: Open, server: RealServer, tmp_path: Path) -> None:
    with prefix_proxy(server, "/proxy/8000/") as at:
        page = opened(f"text={quote(TEXT)}&head=2-1", at=at)
        outside: list[str] = []
        page.on("request", lambda request: None if "/proxy/8000/" in request.url else outside.append(request.url))
        assert "token" not in page.url and page.url.partition("#")[0].endswith("/proxy/8000/")
        (cookie,) = page.context.cookies()
        assert (cookie.get("path"), cookie.get("httpOnly"), cookie.get("sameSite")) == ("/proxy/8000", True, "Strict")
        page.fill(".text", "The cat sat.")
        page.wait_for_selector(f"{READY}[data-shown*='cat sat']")
        assert shown_tokens(page)[1:3] == ["the", "cat"]
        page.keyboard.press("Escape")
        page.click("[data-do='pin']")
        page.click("[data-panel='pins']")
        with page.expect_download() as downloaded:
            page.click("[data-do='offline']")
        downloaded.value.save_as(tmp_path / "pins.html")
        assert "cat sat" in (tmp_path / "pins.html").read_text("utf-8")
        page.click("[data-panel='jobs']")
        page.click(".jobs button[type='submit']")
        done = page.locator("[data-title='attention/entropy'][data-job='done']").first
        done.wait_for(timeout=JOB_MILLISECONDS)
        done.locator("[data-do='show-result']").click()
        done.locator("img").wait_for()
        page.wait_for_load_state("networkidle")
        assert done.locator("img").evaluate("image => image.naturalWidth") > 100
        with page.expect_download() as downloaded:
            done.locator("a:has-text('CSV')").click()
        downloaded.value.save_as(tmp_path / "result.csv")
        assert (tmp_path / "result.csv").read_text("utf-8").startswith("head,layer")
        page.reload()
        assert shown_tokens(page)[2] == "cat" and not outside


def test_pins_are_compared_and_become_an_offline_page(opened: Open, tmp_path: Path) -> None:
    page = opened(f"text={quote(TEXT)}&head=2-1")
    page.keyboard.press("p")
    page.fill(".text", TEXT.replace("old", "young"))
    page.wait_for_selector(f"{READY}[data-shown*='young']")
    page.click("[data-do='pin']")
    page.click("[data-panel='pins']")
    assert page.locator("[data-pin]").count() == 2
    page.locator("[data-do='compare']").first.click()
    page.wait_for_selector("section[aria-label='Difference view']")
    assert "B: tiny" in page.locator(".difference-view").inner_text()
    page.select_option("[data-choice='Colour']", label="entropy")
    with page.expect_download() as downloaded:
        page.click("[data-do='offline']")
    file = tmp_path / "pins.html"
    downloaded.value.save_as(file)
    content = file.read_text("utf-8")
    assert "young" in content and not re.search(r"(src|href)=.?https?:", content)
    page.reload()
    page.wait_for_selector("section[aria-label='Difference view']")
    assert page.locator("[data-pin]").count() == 2, "pins stay in the browser"
    page.select_option("[data-choice='Against']", label="nothing")
    page.wait_for_selector("section[aria-label='Head view']")


def test_two_models_are_compared_on_what_is_typed(opened: Open) -> None:
    page = opened(f"text={quote(TEXT)}&head=2-1")
    page.select_option("[data-choice='Against']", label="random:tiny")
    page.wait_for_selector("section[aria-label='Difference view']")
    page.fill(".text", "The cat saw a [MASK].")
    page.wait_for_selector(f"{READY}[data-shown*='cat']")
    page.wait_for_selector(".predictions thead")
    assert texts(page, ".predictions thead >> nth=0 >> th")[1:] == ["A", "B"]
    assert "change from B" in (page.locator("[data-choice='Colour'] optgroup").nth(1).get_attribute("label") or "")


def test_what_is_seen_is_saved_and_made_again(opened: Open, tmp_path: Path) -> None:
    page = opened(f"text={quote(TEXT)}&head=2-1")
    for kind, beginning in (("svg", "<svg"), ("csv", "head,from,from_token"), ("png", "")):
        with page.expect_download() as downloaded:
            page.click(f"[data-do='{kind}']")
        downloaded.value.save_as(tmp_path / kind)
        assert (tmp_path / kind).read_bytes().startswith(beginning.encode())
    page.click("[data-do='bibtex']")
    message = page.locator("footer output")
    page.wait_for_selector("footer output:has-text('Nothing to cite'), footer output:has-text('saved')")
    has_numbers = page.locator(".head-card .facts dd b").count() > 0
    assert ("Nothing to cite" in message.inner_text()) != has_numbers
    page.select_option("[data-choice='Quantity']", "norm")
    page.wait_for_selector(f"{READY}[data-shown*='norm']")
    with page.expect_download() as downloaded:
        page.click("[data-do='bibtex']")
    downloaded.value.save_as(tmp_path / "bib")
    assert downloaded.value.suggested_filename == "head-2-1.bib"
    references = (tmp_path / "bib").read_text("utf-8")
    assert "@inproceedings{kobayashi2020" in references and "Attention is Not Only a Weight" in references
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    copied = {
        "command": ("Command line", "bertology view"),
        "python": ("Python", "import bertology"),
        "link": ("Link", f"{page.url.partition('#')[0]}#text=The+old+man"),
    }
    for kind, (name, expected) in copied.items():
        page.click(f"[data-do='{kind}']")
        page.wait_for_selector(f"footer output:has-text('{name} copied')")
        assert page.evaluate("navigator.clipboard.readText()").startswith(expected)


@pytest.mark.parametrize(("width", "dark"), [(1024, True), (390, False)], ids=["dark", "phone"])
def test_the_page_breaks_no_rule_of_accessibility(opened: Open, width: int, dark: bool) -> None:
    page = opened(f"text={quote(TEXT)}&head=2-1", width=width, dark=dark)
    page.wait_for_selector(".head-card[data-head='2-1']")
    assert accessibility_violations(page) == []
    page.keyboard.press("2")
    page.wait_for_selector(".picture.matrix")
    assert accessibility_violations(page) == []


@pytest.mark.parametrize(("width", "dark"), [(1440, True), (1024, False), (390, False)])
def test_keyboard_alone_on_every_width(opened: Open, width: int, dark: bool) -> None:
    page = opened(f"text={quote(TEXT)}&head=2-1", width=width, dark=dark)
    assert page.locator("html").evaluate("page => page.scrollWidth - page.clientWidth") == 0
    page.keyboard.press("g")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("[data-head='2-2'][aria-pressed='true']:focus")
    page.keyboard.press("ArrowUp")
    page.wait_for_selector(".head-card[data-head='1-2']")
    page.keyboard.press("2")
    page.wait_for_selector(".picture.matrix")
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Escape")
    page.keyboard.press("t")
    page.keyboard.press("Control+a")
    page.keyboard.type("The cat sat.")
    page.wait_for_selector(f"{READY}[data-shown*='cat sat']")
