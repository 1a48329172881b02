"""Run on from any layer, or with layers moved, every family gives what it gives when it is run from the input."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

import models
from bertology.encoder.attend import Gates
from bertology.encoder.blocks import LAYERS
from bertology.encoder.encoder import Batch
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.resumable import Habits, Resumable, common_start, resumable
from bertology.encoder.variant import blocks_of

NAMES = [*models.FAMILIES, *models.VARIANTS]


def language_model(name: str) -> HuggingFaceEncoder:
    return models.encoder(name, "LMHeadModel" if name.startswith("gpt2") else "ForMaskedLM")


def stations(encoder: HuggingFaceEncoder) -> Resumable:
    made = resumable(encoder)
    assert made is not None
    return made


def shown(encoder: HuggingFaceEncoder) -> Batch:
    return models.batch(encoder.tokenise(models.inputs()[:3]))


def assert_same(found: Mapping[str, Tensor], expected: Mapping[str, Tensor], batch: Batch) -> None:
    """What models say of padding means nothing: uniform attention and SDPA differ there."""
    assert found.keys() == expected.keys() and found
    for name, logits in expected.items():
        real = batch.mask.bool() if logits.shape[:2] == batch.mask.shape else slice(None)
        torch.testing.assert_close(found[name][real], logits[real], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["language model", "ForSequenceClassification"])
@torch.no_grad()
def test_run_on_under_gates_of_every_row(name: str, kind: str) -> None:
    encoder = language_model(name) if kind == "language model" else models.encoder(name, kind)
    batch, made = shown(encoder), stations(encoder)
    journey = made.travel(batch)
    assert_same(journey.output.logits, encoder.run(batch).logits, batch)
    size = encoder.width // encoder.heads
    shift = torch.randn(encoder.layers, encoder.heads, size, generator=torch.Generator().manual_seed(0))
    for first in range(encoder.layers):
        each = [torch.ones(encoder.layers, encoder.heads) for _ in range(2)]
        each[0][first, 1] = 0
        each[1][first:, 2] = 0.5
        every = [Gates(scale=g, uniform=g < 0.2, shift=shift * (g != 1)[..., None]) for g in each]
        joined = Gates(
            *(
                torch.stack([getattr(g, kind) for g in every], 2).repeat_interleave(3, 2)
                for kind in ("scale", "uniform")
            ),
            shift=torch.stack([g.shift for g in every if g.shift is not None], 2).repeat_interleave(3, 2),
        )
        found = made.gated(journey, made.midway(journey, first), joined, times=2, first=first, last=encoder.layers - 1)
        for number, gates in enumerate(every):
            own = {name: logits[3 * number : 3 * number + 3] for name, logits in found.logits.items()}
            expected = encoder.gated(gates).run(batch).logits
            assert_same(own, expected, batch)
            assert any(float((own[n] - journey.output.logits[n]).abs().max()) > 1e-3 for n in own)


def arranged_by_hand(encoder: HuggingFaceEncoder, order: Sequence[int]) -> HuggingFaceEncoder:
    model = copy.deepcopy(encoder.model)
    if model.config.model_type == "albert":
        model.config.num_hidden_layers = len(order)  # all its layers are one
        return models.wrapped(model, "albert")
    blocks = blocks_of(model)
    layers = list(blocks)
    del blocks[:]
    blocks.extend([layers[layer] for layer in order])
    moved = copy.copy(encoder)
    object.__setattr__(moved, "model", model)
    return moved


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_layers_left_out_exchanged_and_repeated(name: str) -> None:
    encoder = language_model(name)
    batch, made = shown(encoder), stations(encoder)
    journey = made.travel(batch)
    whole = tuple(range(encoder.layers))
    orders = [whole, whole[:-1], whole[1:], (1, 0, *whole[2:]), (*whole, whole[-1]), (0, *whole), (0, *whole[1:], 0, 1)]
    for order in orders:
        found = made.rearranged(journey, order).logits
        assert_same(found, arranged_by_hand(encoder, order).run(batch).logits, batch)
    if name != "albert":
        changed = made.rearranged(journey, (1, 0, *whole[2:])).logits
        assert any(float((changed[n] - journey.output.logits[n]).abs().max()) > 1e-3 for n in changed)


ENDINGS = [
    *((name, "ForSequenceClassification", "label") for name in NAMES if not name.startswith("gpt2")),
    *((name, "ForMaskedLM", "mlm") for name in NAMES if not name.startswith("gpt2")),
    ("bert", "ForPreTraining", "mlm"),
    ("bert", "ForPreTraining", "nsp"),
]


@pytest.mark.parametrize(("name", "kind", "head"), ENDINGS)
@torch.no_grad()
def test_what_is_read_alone_comes_out_as_of_the_whole_model(name: str, kind: str, head: str) -> None:
    encoder = models.encoder(name, kind)
    batch, made = shown(encoder), stations(encoder)
    asked = torch.tensor([[1, 4], [2, 0], [3, 3]])
    whole, journey = made.travel(batch), made.travel(batch, head=head, asked=asked)
    pieces = journey.output.pieces
    assert pieces is None if head != "mlm" else pieces is not None and torch.equal(pieces, asked)

    def assert_read(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
        assert list(found) == [head]
        logits = expected[head]
        own = logits[torch.arange(3)[:, None], asked] if head == "mlm" else logits
        torch.testing.assert_close(found[head], own, atol=1e-5, rtol=1e-5)

    assert_read(journey.output.logits, whole.output.logits)
    every = tuple(range(encoder.layers))
    for order in (every[:-1], (1, 0, *every[2:]), (*every, every[-1]), (0, *every), ()):
        assert_read(made.rearranged(journey, order).logits, made.rearranged(whole, order).logits)
    for first in range(encoder.layers):
        for last in range(first, encoder.layers):
            scale = torch.ones(encoder.layers, encoder.heads)
            scale[first, 1] = scale[last, 2] = 0
            given = {"times": 1, "first": first, "last": last}
            found = made.gated(journey, made.midway(journey, first), Gates(scale=scale), **given)
            assert_read(found.logits, encoder.gated(Gates(scale=scale)).run(batch).logits)


@pytest.mark.parametrize(
    ("name", "kind", "habits"),
    [
        ("bert", "ForPreTraining", Habits(frozenset({"nsp"}), frozenset({"mlm"}), alone=True)),
        ("distilbert", "ForSequenceClassification", Habits(frozenset({"label"}), alone=True)),
        ("albert", "ForTokenClassification", Habits(own=frozenset({"token"}), alone=True)),
        ("electra", "ForQuestionAnswering", Habits(own=frozenset({"answer_start", "answer_end"}), alone=True)),
        ("mpnet", "ForMultipleChoice", Habits(frozenset({"choice"}))),
        ("deberta-v2", "ForMaskedLM", Habits(own=frozenset({"mlm"}))),
        ("gpt2", "ForSequenceClassification", Habits()),
        ("gpt2", "LMHeadModel", Habits()),
    ],
)
def test_what_a_model_reads_is_found_out(name: str, kind: str, habits: Habits) -> None:
    assert stations(models.encoder(name, kind)).habits == habits


def test_a_mean_of_all_pieces_is_not_read_off_the_first() -> None:
    made = models.model("modernbert", "ForSequenceClassification")
    assert stations(models.wrapped(made, "modernbert")).habits.first == {"label"}
    made.config.classifier_pooling = "mean"
    assert stations(models.wrapped(made, "modernbert")).habits == Habits()


def test_a_layer_that_is_not_made_of_its_parts_is_not_run_by_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_residual(layer: Any, states: Tensor) -> Tensor:
        return layer.output(layer.intermediate(states), torch.zeros_like(states))

    encoder = models.encoder("bert", "ForMaskedLM")
    monkeypatch.setitem(LAYERS, "BertLayer", replace(LAYERS["BertLayer"], feed_forward=without_residual))
    assert resumable(encoder) is None


def test_queries_of_another_scale_are_not_projected() -> None:
    made = models.model("bert", "ForMaskedLM")
    for layer in made.bert.encoder.layer:
        layer.attention.self.scaling *= 0.5
    assert not stations(models.wrapped(made, "bert")).habits.alone


@torch.no_grad()
def test_without_layers_the_head_reads_the_embeddings() -> None:
    encoder = models.encoder("bert", "ForMaskedLM")
    batch, made = shown(encoder), stations(encoder)
    found = made.rearranged(made.travel(batch), ()).logits["mlm"]
    states = encoder.model.bert.embeddings(batch.ids, batch.types)
    torch.testing.assert_close(found, encoder.model.cls(states), atol=1e-6, rtol=1e-6)


@torch.no_grad()
def test_the_model_itself_is_left_as_it_was() -> None:
    encoder = models.encoder("bert", "ForMaskedLM")
    before, made = encoder.fingerprint, stations(encoder)
    assert encoder.fingerprint == before
    assert all(type(module).__name__ != "Station" for module in encoder.model.modules())
    own = {id(weights) for weights in encoder.model.parameters()}
    assert {id(weights) for weights in made.encoder.model.parameters()} == own


def test_a_family_whose_layers_are_not_known_cannot_be_run_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertology.encoder.resumable.LAYERS", {})
    assert resumable(models.encoder("bert", "ForMaskedLM")) is None


@pytest.mark.parametrize(
    ("order", "start"), [((0, 1, 2), 3), ((0, 2, 1), 1), ((), 0), ((0, 1), 2), ((0, 1, 2, 2), 3), ((1, 2), 0)]
)
def test_where_an_order_begins_to_differ(order: tuple[int, ...], start: int) -> None:
    assert common_start(order, 3) == start
