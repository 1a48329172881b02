"""Many changes at once, from the layer where they begin: in every family the marks that full passes give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import models
import planted_heads
from bertology.corpus.corpus import Corpus, read_text
from bertology.encoder.attend import Gates
from bertology.encoder.encoder import Batch
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.load import load
from bertology.encoder.pruning import prune
from bertology.errors import Refusal
from bertology.measures.causes import ablation as engine
from bertology.measures.causes.ablation import Change, HeadChange, How, LayerChange, ablation, mean_outputs
from bertology.measures.causes.examination import Examination, Marks, examine
from bertology.measures.work import FOLDER, Work

NAMES = [*models.FAMILIES, *models.VARIANTS]
HOWS: tuple[How, ...] = ("uniform", "zero", "mean")


def classified(encoder: HuggingFaceEncoder) -> Examination:
    texts = read_text(*models.TEXTS)
    labels = list(encoder.model.config.id2label.values())
    items = tuple(replace(item, label=labels[number % 3]) for number, item in enumerate(texts))
    return examine(encoder, Corpus(items, name="texts"))


def head_changes(encoder: HuggingFaceEncoder) -> list[Change]:
    """Every head alone, every layer, and a set over two layers."""
    layers, heads = encoder.layers, encoder.heads
    single = np.eye(layers * heads, dtype=np.bool_).reshape(-1, layers, heads)
    whole = np.broadcast_to(np.eye(layers, dtype=np.bool_)[:, :, None], (layers, layers, heads))
    return [HeadChange(mask) for mask in (*single, *whole, single[1] | single[-1])]


def assert_same(found: list[Marks], expected: list[Marks]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.losses, other.losses, atol=1e-5)
        np.testing.assert_array_equal(one.counts.right, other.counts.right)
        np.testing.assert_array_equal(one.counts.of, other.counts.of)


@pytest.mark.parametrize("name", NAMES)
def test_the_marks_are_those_of_full_passes(name: str) -> None:
    encoder = models.encoder(name, "ForSequenceClassification")
    examination, changes = classified(encoder), head_changes(encoder)
    for how in HOWS:
        parts = ablation(encoder, examination, how)
        assert parts.parts is not None
        found = parts.judge(examination, changes, Work())
        assert_same(found, ablation(encoder, examination, how, whole_passes=True).judge(examination, changes, Work()))
        assert all(np.abs(one.losses - found[0].losses).max() > 1e-4 for one in found[1:])


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("gpt2")])
def test_hidden_pieces_have_the_marks_of_full_passes(name: str) -> None:
    encoder = models.encoder(name, "ForMaskedLM")
    examination, changes = examine(encoder, read_text(*models.TEXTS)), head_changes(encoder)
    assert len({int(mask.sum()) for mask in examination.sheets[0].shown.mask}) > 1, "padding is among it"
    assert_same([ablation(encoder, examination).judge(examination, [], Work())[0]], [examination.marks(encoder.run)])
    for how in HOWS:
        found = ablation(encoder, examination, how).judge(examination, changes, Work())
        assert_same(found, ablation(encoder, examination, how, whole_passes=True).judge(examination, changes, Work()))


@pytest.mark.parametrize("task", ["token", "qa"])
def test_answers_that_all_pieces_give_have_the_marks_of_full_passes(task: str) -> None:
    from bertology.encoder.task_heads import with_head
    from bertology.encoder.variant import Variant
    from finetuning.planted_tasks import planted

    base = load("tiny")
    assert isinstance(base, HuggingFaceEncoder)
    corpus = planted(task, 8)
    tags = sorted({tag for item in corpus for tag in item.parts[0].tags or ()})
    encoder = with_head(base, "answer" if task == "qa" else "token", tags, variant=Variant(), seed=3)
    examination, changes = examine(encoder, corpus, task=task), head_changes(encoder)
    found = ablation(encoder, examination).judge(examination, changes, Work())
    assert_same(found, ablation(encoder, examination, whole_passes=True).judge(examination, changes, Work()))


def test_full_passes_are_those_of_the_gated_encoder() -> None:
    encoder = models.encoder("bert", "ForSequenceClassification")
    examination, change = classified(encoder), np.zeros((2, 4), np.bool_)
    change[1, 2] = True
    found = ablation(encoder, examination, "zero").judge(examination, [HeadChange(change)], Work())
    gated = encoder.gated(Gates(scale=torch.from_numpy(~change).float()))
    assert_same(found, [examination.marks(encoder.run), examination.marks(gated.run)])


@pytest.mark.parametrize("rows", [1, 7, 10_000])
def test_how_many_changes_are_run_together_changes_nothing(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = models.encoder("bert", "ForMaskedLM")
    examination = examine(encoder, read_text(*models.TEXTS))
    expected = ablation(encoder, examination).judge(examination, head_changes(encoder), Work())
    monkeypatch.setattr(engine, "PIECES_AT_ONCE", {"cpu": rows * examination.sheets[0].shown.ids.numel()})
    assert_same(ablation(encoder, examination).judge(examination, head_changes(encoder), Work()), expected)


def test_what_lies_below_a_change_is_not_run_again() -> None:
    encoder, corpus = planted_heads.one_head()
    examination = examine(encoder, corpus, items=8)
    made = ablation(encoder, examination, "zero")
    assert made.parts is not None
    rows: list[tuple[int, int]] = []

    def note(place: int) -> Any:
        def noted(_: Any, given: Any) -> None:
            rows.append((place, len(given[0])))

        return noted

    noting = [station.layer.register_forward_pre_hook(note(place)) for place, station in enumerate(made.parts.stations)]
    made.judge(examination, head_changes(encoder)[:12], Work())
    for one in noting:
        one.remove()
    # Once for all, once more to see what the heads give; four changes in the first layer are then run through the
    # second. The last layer is run for [CLS] alone, and so not by its own way.
    assert sorted(rows) == [(0, 8), (0, 8), (1, 8), (1, 8), (1, 32), (2, 8)]


def test_the_mean_is_over_real_pieces() -> None:
    encoder = models.encoder("bert", "ForMaskedLM")
    examination = examine(encoder, read_text(*models.TEXTS))
    contexts: list[list[Any]] = [[], []]

    def see(layer: Any) -> None:
        contexts[layer.layer].append(layer.context[0])

    for sheet in examination.sheets:
        for row, mask in zip(range(len(sheet.items)), sheet.shown.mask, strict=True):
            n = int(mask.sum())
            alone = Batch(*(part[row : row + 1, :n] for part in (sheet.shown.ids, sheet.shown.types, sheet.shown.mask)))
            with torch.no_grad():
                encoder.run(alone, on_layer=see)
    expected = torch.stack([torch.cat(some, 1).mean(1) for some in contexts])
    torch.testing.assert_close(mean_outputs(encoder, examination), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", ["bert", "albert"])
def test_layers_in_another_order(name: str) -> None:
    encoder = models.encoder(name, "ForSequenceClassification")
    examination = classified(encoder)
    whole, same, swapped, dropped = ablation(encoder, examination).judge(
        examination, [LayerChange((0, 1)), LayerChange((1, 0)), LayerChange((0,))], Work()
    )
    assert_same([same], [whole])
    assert np.abs(dropped.losses - whole.losses).min() > 1e-4
    # The layers of ALBERT are one: to exchange them is to leave them as they are.
    assert (np.abs(swapped.losses - whole.losses).max() > 1e-3) == (name != "albert")


def test_a_family_that_cannot_be_run_on_gets_full_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = models.encoder("bert", "ForSequenceClassification")
    examination, changes = classified(encoder), head_changes(encoder)[:3]
    expected = ablation(encoder, examination).judge(examination, changes, Work())
    monkeypatch.setattr("bertology.encoder.resumable.LAYERS", {})
    made = ablation(encoder, examination)
    assert made.parts is None
    assert_same(made.judge(examination, changes, Work()), expected)
    with pytest.raises(Refusal, match="cannot be left out or exchanged"):
        made.judge(examination, [LayerChange((1, 0))], Work())


def test_of_a_model_whose_heads_are_gone_layers_can_be_moved_and_no_heads_changed() -> None:
    encoder = models.encoder("bert", "ForSequenceClassification")
    examination, kept = classified(encoder), np.ones((2, 4), np.bool_)
    kept[0] = False
    kept[1, 2:] = False
    pruned, gated = prune(encoder, kept), encoder.gated(Gates(scale=torch.from_numpy(kept).float()))
    made = ablation(pruned, examination)
    assert made.parts is not None
    whole, moved = made.judge(examination, [LayerChange((1, 0))], Work())
    assert_same([whole], [examination.marks(gated.run)])
    assert np.abs(moved.losses - whole.losses).max() > 1e-4
    with pytest.raises(Refusal, match="was pruned"):
        made.judge(examination, head_changes(encoder), Work())


def test_what_has_no_heads_is_refused() -> None:
    encoder, corpus = planted_heads.one_head()
    examination = examine(encoder, corpus, items=4)
    for unfit in (load("random-vectors:8"), encoder.gated(Gates(scale=torch.ones(3, 4)))):
        with pytest.raises(Refusal, match="Nothing can be taken away"):
            ablation(unfit, examination)


def test_finished_sheets_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, corpus = planted_heads.one_head()
    examination, changes = examine(encoder, corpus), head_changes(encoder)
    assert len(examination.sheets) == 2
    whole = ablation(encoder, examination).judge(examination, changes, Work())
    outputs, judged = engine.Ablation.outputs, list[int]()

    def stopped(self: Any, sheet: Any, *given: Any) -> Any:
        judged.append(len(sheet.items))
        if len(judged) == 2:
            raise KeyboardInterrupt
        return outputs(self, sheet, *given)

    monkeypatch.setattr(engine.Ablation, "outputs", stopped)
    with pytest.raises(KeyboardInterrupt):
        ablation(encoder, examination).judge(examination, changes, Work(tmp_path))
    assert len(list((tmp_path / FOLDER).glob("*.json"))) == 1
    told: list[tuple[int, int]] = []

    def progress(_: str) -> Callable[[int, int], None]:
        return lambda done, total: told.append((done, total))

    again = ablation(encoder, examination).judge(examination, changes, Work(tmp_path, progress))
    assert len(judged) == 3 and told[-1] == (2 * len(changes), 2 * len(changes))
    assert_same(again, whole)
    for other in (changes[:3], changes):
        ablation(encoder, examination, "zero").judge(examination, other, Work(tmp_path))
    assert len(judged) == 7  # another set of changes, or another way, is another part


def test_an_item_may_have_several_rows() -> None:
    from bertology.encoder.task_heads import with_head
    from bertology.encoder.variant import Variant
    from finetuning.planted_tasks import planted

    base = load("tiny")
    assert isinstance(base, HuggingFaceEncoder)
    encoder = with_head(base, "choice", (), variant=Variant(), seed=3)
    examination, changes = examine(encoder, planted("choice", 8), task="choice"), head_changes(encoder)
    assert len(examination.sheets[0].shown.ids) > len(examination.items)
    found = ablation(encoder, examination).judge(examination, changes, Work())
    assert_same(found, ablation(encoder, examination, whole_passes=True).judge(examination, changes, Work()))
