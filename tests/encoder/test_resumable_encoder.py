"""Resumed forward passes, and passes with layers moved, equal full passes in every family."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

import tiny_models
from bertology.encoder import resumable_encoder
from bertology.encoder.attention_hook import Gates
from bertology.encoder.encoder import ModelInputs, TaskEncoder
from bertology.encoder.families import layer_specs
from bertology.encoder.layer_proxies import LayerProxy
from bertology.encoder.layer_variants import transformer_layers
from bertology.encoder.resumable_encoder import ResumableEncoder, TaskHeadLocality, common_prefix_length, make_resumable

NAMES = [*tiny_models.FAMILIES, *tiny_models.VARIANTS]


def language_model(name: str) -> TaskEncoder:
    return tiny_models.encoder(name, "LMHeadModel" if name.startswith("gpt2") else "ForMaskedLM")


def require_resumable(encoder: TaskEncoder) -> ResumableEncoder:
    resumable = make_resumable(encoder)
    assert resumable is not None
    return resumable


def make_batch(encoder: TaskEncoder) -> ModelInputs:
    return tiny_models.batch(encoder.tokenise(tiny_models.inputs()[:3]))


def assert_same_logits(actual: Mapping[str, Tensor], expected: Mapping[str, Tensor], batch: ModelInputs) -> None:
    """Compare logits of tokens only: at padding, uniform attention and SDPA differ."""
    assert actual.keys() == expected.keys() and actual
    for name, logits in expected.items():
        mask = batch.attention_mask.bool() if logits.shape[:2] == batch.attention_mask.shape else slice(None)
        torch.testing.assert_close(actual[name][mask], logits[mask], atol=1e-5, rtol=1e-5)


def differs(actual: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> bool:
    return any(float((actual[name] - expected[name]).abs().max()) > 1e-3 for name in actual)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["language model", "ForSequenceClassification"])
@torch.no_grad()
def test_resuming_with_different_gates_per_row(name: str, kind: str) -> None:
    encoder = language_model(name) if kind == "language model" else tiny_models.encoder(name, kind)
    batch, resumable = make_batch(encoder), require_resumable(encoder)
    trace = resumable.trace(batch)
    assert_same_logits(trace.output.logits, encoder.forward(batch).logits, batch)
    size = encoder.width // encoder.heads
    offset = torch.randn(encoder.layers, encoder.heads, size, generator=torch.Generator().manual_seed(0))
    for first_layer in range(encoder.layers):
        scales = [torch.ones(encoder.layers, encoder.heads) for _ in range(2)]
        scales[0][first_layer, 1] = 0
        scales[1][first_layer:, 2] = 0.5
        separate = [Gates(scale=s, uniform=s < 0.2, offset=offset * (s != 1)[..., None]) for s in scales]
        stacked = {
            field: torch.stack([getattr(gates, field) for gates in separate], 2).repeat_interleave(3, 2)
            for field in ("scale", "uniform", "offset")
        }
        output = resumable.resume_gated(
            trace,
            resumable.head_outputs(trace, first_layer),
            Gates(**stacked),
            repeats=2,
            first_layer=first_layer,
            last_gated_layer=encoder.layers - 1,
        )
        for index, gates in enumerate(separate):
            logits = {name: values[3 * index : 3 * index + 3] for name, values in output.logits.items()}
            assert_same_logits(logits, encoder.with_gates(gates).forward(batch).logits, batch)
            assert differs(logits, trace.output.logits)


def reordered_model(encoder: TaskEncoder, layer_order: Sequence[int]) -> TaskEncoder:
    """A copy of the encoder with its layers in another order."""
    model = copy.deepcopy(encoder.model)
    if model.config.model_type == "albert":
        model.config.num_hidden_layers = len(layer_order)  # its layers are one module
        return tiny_models.wrap_model(model, "albert")
    module_list = transformer_layers(model)
    layers = list(module_list)
    del module_list[:]
    module_list.extend([layers[layer] for layer in layer_order])
    return encoder.with_model(model)


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_skipped_swapped_and_repeated_layers(name: str) -> None:
    encoder = language_model(name)
    batch, resumable = make_batch(encoder), require_resumable(encoder)
    trace = resumable.trace(batch)
    every = tuple(range(encoder.layers))
    orders = [every, every[:-1], every[1:], (1, 0, *every[2:]), (*every, every[-1]), (0, *every), (0, *every[1:], 0, 1)]
    for order in orders:
        logits = resumable.resume_reordered(trace, order).logits
        assert_same_logits(logits, reordered_model(encoder, order).forward(batch).logits, batch)
    if name != "albert":
        assert differs(resumable.resume_reordered(trace, (1, 0, *every[2:])).logits, trace.output.logits)


TASK_HEADS = [
    *((name, "ForSequenceClassification", "label") for name in NAMES if not name.startswith("gpt2")),
    *((name, "ForMaskedLM", "mlm") for name in NAMES if not name.startswith("gpt2")),
    ("bert", "ForPreTraining", "mlm"),
    ("bert", "ForPreTraining", "nsp"),
]


@pytest.mark.parametrize(("name", "kind", "task_head"), TASK_HEADS)
@torch.no_grad()
def test_logits_at_the_positions_that_are_read_equal_those_of_the_full_model(
    name: str, kind: str, task_head: str
) -> None:
    encoder = tiny_models.encoder(name, kind)
    batch, resumable = make_batch(encoder), require_resumable(encoder)
    positions = torch.tensor([[1, 4], [2, 0], [3, 3]])
    full, trace = resumable.trace(batch), resumable.trace(batch, task_head=task_head, positions=positions)
    logit_positions = trace.output.logit_positions
    if task_head == "mlm":
        assert logit_positions is not None and torch.equal(logit_positions, positions)
    else:
        assert logit_positions is None

    def assert_same_at_positions(actual: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
        assert list(actual) == [task_head]
        logits = expected[task_head]
        selected = logits[torch.arange(3)[:, None], positions] if task_head == "mlm" else logits
        torch.testing.assert_close(actual[task_head], selected, atol=1e-5, rtol=1e-5)

    assert_same_at_positions(trace.output.logits, full.output.logits)
    every = tuple(range(encoder.layers))
    for order in (every[:-1], (1, 0, *every[2:]), (*every, every[-1]), (0, *every), ()):
        actual, expected = (resumable.resume_reordered(start, order).logits for start in (trace, full))
        assert_same_at_positions(actual, expected)
    for first in range(encoder.layers):
        for last in range(first, encoder.layers):
            scale = torch.ones(encoder.layers, encoder.heads)
            scale[first, 1] = scale[last, 2] = 0
            gates = Gates(scale=scale)
            output = resumable.resume_gated(
                trace,
                resumable.head_outputs(trace, first),
                gates,
                repeats=1,
                first_layer=first,
                last_gated_layer=last,
            )
            assert_same_at_positions(output.logits, encoder.with_gates(gates).forward(batch).logits)


@pytest.mark.parametrize(
    ("name", "kind", "locality"),
    [
        (
            "bert",
            "ForPreTraining",
            TaskHeadLocality(frozenset({"nsp"}), frozenset({"mlm"}), layers_support_positions=True),
        ),
        (
            "distilbert",
            "ForSequenceClassification",
            TaskHeadLocality(frozenset({"label"}), layers_support_positions=True),
        ),
        (
            "albert",
            "ForTokenClassification",
            TaskHeadLocality(per_token_heads=frozenset({"token"}), layers_support_positions=True),
        ),
        (
            "electra",
            "ForQuestionAnswering",
            TaskHeadLocality(per_token_heads=frozenset({"answer_start", "answer_end"}), layers_support_positions=True),
        ),
        ("mpnet", "ForMultipleChoice", TaskHeadLocality(frozenset({"choice"}))),
        ("deberta-v2", "ForMaskedLM", TaskHeadLocality(per_token_heads=frozenset({"mlm"}))),
        ("gpt2", "ForSequenceClassification", TaskHeadLocality()),
        ("gpt2", "LMHeadModel", TaskHeadLocality()),
    ],
)
def test_the_positions_that_a_task_head_reads(name: str, kind: str, locality: TaskHeadLocality) -> None:
    assert require_resumable(tiny_models.encoder(name, kind)).locality == locality


def test_mean_pooling_does_not_read_the_first_token_only() -> None:
    model = tiny_models.model("modernbert", "ForSequenceClassification")
    assert require_resumable(tiny_models.wrap_model(model, "modernbert")).locality.first_token_heads == {"label"}
    model.config.classifier_pooling = "mean"
    assert require_resumable(tiny_models.wrap_model(model, "modernbert")).locality == TaskHeadLocality()


def test_a_layer_that_is_not_reproduced_by_its_parts_is_not_resumable(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_residual(layer: Any, states: Tensor) -> Tensor:
        return layer.output(layer.intermediate(states), torch.zeros_like(states))

    encoder = tiny_models.encoder("bert", "ForMaskedLM")
    specs = layer_specs()
    monkeypatch.setitem(specs, "BertLayer", replace(specs["BertLayer"], feed_forward=without_residual))
    assert make_resumable(encoder) is None


def test_layers_with_another_scaling_do_not_support_positions() -> None:
    model = tiny_models.model("bert", "ForMaskedLM")
    for layer in model.bert.encoder.layer:
        layer.attention.self.scaling *= 0.5
    assert not require_resumable(tiny_models.wrap_model(model, "bert")).locality.layers_support_positions


@torch.no_grad()
def test_without_layers_the_task_head_reads_the_embeddings() -> None:
    encoder = tiny_models.encoder("bert", "ForMaskedLM")
    batch, resumable = make_batch(encoder), require_resumable(encoder)
    logits = resumable.resume_reordered(resumable.trace(batch), ()).logits["mlm"]
    states = encoder.model.bert.embeddings(batch.input_ids, batch.token_type_ids)
    torch.testing.assert_close(logits, encoder.model.cls(states), atol=1e-6, rtol=1e-6)


@torch.no_grad()
def test_the_original_model_is_unchanged_and_its_weights_are_shared() -> None:
    encoder = tiny_models.encoder("bert", "ForMaskedLM")
    before, resumable = encoder.fingerprint, require_resumable(encoder)
    assert encoder.fingerprint == before
    assert not any(isinstance(module, LayerProxy) for module in encoder.model.modules())
    original = {id(weights) for weights in encoder.model.parameters()}
    assert {id(weights) for weights in resumable.encoder.model.parameters()} == original


def test_a_model_without_known_layers_is_not_resumable(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_never_a_layer(module: object) -> bool:
        return False

    monkeypatch.setattr(resumable_encoder, "is_layer", is_never_a_layer)
    assert make_resumable(tiny_models.encoder("bert", "ForMaskedLM")) is None


@pytest.mark.parametrize(
    ("order", "length"), [((0, 1, 2), 3), ((0, 2, 1), 1), ((), 0), ((0, 1), 2), ((0, 1, 2, 2), 3), ((1, 2), 0)]
)
def test_the_unchanged_start_of_a_layer_order(order: tuple[int, ...], length: int) -> None:
    assert common_prefix_length(order, 3) == length
