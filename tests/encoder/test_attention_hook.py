"""Gates in every family, against a second model whose weights are changed by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

import tiny_models
from bertology.encoder.attention_hook import Gates, LayerActivations
from bertology.encoder.encoder import ModelInputs, TaskEncoder
from bertology.errors import Refusal
from tiny_models import FAMILIES, HEADS

SIZE = tiny_models.WIDTH // HEADS


@dataclass(frozen=True)
class Projections:
    """Names of the output and query projections of a family."""

    output: str
    query: str
    transposed: bool = False
    shared: bool = False


PROJECTIONS = {
    "bert": Projections("attention.output.dense", "attention.self.query"),
    "roberta": Projections("attention.output.dense", "attention.self.query"),
    "distilbert": Projections("attention.out_lin", "attention.q_lin"),
    "electra": Projections("attention.output.dense", "attention.self.query"),
    "albert": Projections("attention.dense", "attention.query", shared=True),
    "mpnet": Projections("attn.o", "attn.q"),
    "deberta-v2": Projections("attention.output.dense", "attention.self.query_proj"),
    "modernbert": Projections("attn.Wo", "attn.Wqkv"),
    "gpt2": Projections("attn.c_proj", "attn.c_attn", transposed=True),
}


def _batch(encoder: TaskEncoder) -> ModelInputs:
    return tiny_models.batch(encoder.tokenise(tiny_models.inputs()[:3]))


def _last_states(encoder: TaskEncoder, gates: Gates | None = None) -> Tensor:
    batch = _batch(encoder)
    with torch.inference_mode():
        output = encoder.with_gates(gates).forward(batch, on_layer=lambda _: None, hidden=True)
    return output.hidden_states[-1][batch.attention_mask.bool()]


def _expected(encoder: TaskEncoder, change: Callable[[Any], None]) -> Tensor:
    reference = tiny_models.reference(encoder)
    change(reference)
    batch = _batch(encoder)
    arguments = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
    pad = reference.config.pad_token_id or 0
    arguments["input_ids"] = batch.input_ids.masked_fill(batch.attention_mask == 0, pad)
    with torch.inference_mode():
        return reference(**arguments).last_hidden_state[batch.attention_mask.bool()]


def _ones(encoder: TaskEncoder) -> Tensor:
    return torch.ones(encoder.layers, encoder.heads)


def _modules(model: Any, suffix: str) -> list[Any]:
    return [module for name, module in model.named_modules() if name.endswith(suffix)]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_gate_of_ones_changes_nothing(name: str) -> None:
    encoder = tiny_models.encoder(name)
    torch.testing.assert_close(
        _last_states(encoder, Gates(scale=_ones(encoder))), _last_states(encoder), atol=0, rtol=0
    )


@pytest.mark.parametrize("name", FAMILIES)
def test_a_gate_of_zero_changes_the_output(name: str) -> None:
    encoder = tiny_models.encoder(name)
    ungated = _last_states(encoder)
    for layer in range(encoder.layers):
        for head in range(encoder.heads):
            scale = _ones(encoder)
            scale[layer, head] = 0
            assert float((_last_states(encoder, Gates(scale=scale)) - ungated).abs().max()) > 1e-2


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("value", [0.0, 0.3])
def test_a_scale_multiplies_the_head_in_the_output_projection(name: str, value: float) -> None:
    encoder = tiny_models.encoder(name)
    paths = PROJECTIONS[name]
    for head in range(encoder.heads):
        layer = head % encoder.layers
        columns = slice(head * SIZE, (head + 1) * SIZE)

        def change(reference: Any, layer: int = layer, columns: slice = columns) -> None:
            projections = _modules(reference, paths.output)
            weight = projections[0 if paths.shared else layer].weight.data
            (weight.T if not paths.transposed else weight)[columns] *= value

        scale = _ones(encoder)
        scale[slice(None) if paths.shared else layer, head] = value
        torch.testing.assert_close(
            _last_states(encoder, Gates(scale=scale)), _expected(encoder, change), atol=1e-5, rtol=1e-4
        )


@pytest.mark.parametrize("name", FAMILIES)
def test_an_offset_is_a_bias_of_the_output_projection(name: str) -> None:
    """A head with a constant output equals scale 0 and that vector, projected, as a bias."""
    encoder = tiny_models.encoder(name)
    paths, head, layer = PROJECTIONS[name], 2, 1
    columns = slice(head * SIZE, (head + 1) * SIZE)
    constant = torch.randn(SIZE, generator=torch.Generator().manual_seed(0))

    def change(reference: Any) -> None:
        projection = _modules(reference, paths.output)[0 if paths.shared else layer]
        weight = projection.weight.data if paths.transposed else projection.weight.data.T
        added = constant @ weight[columns]
        projection.bias = torch.nn.Parameter(added + (0 if projection.bias is None else projection.bias.data))
        weight[columns] = 0

    layers = slice(None) if paths.shared else layer
    scale, offset = _ones(encoder), torch.zeros(encoder.layers, encoder.heads, SIZE)
    scale[layers, head], offset[layers, head] = 0, constant
    gated = _last_states(encoder, Gates(scale=scale, offset=offset))
    torch.testing.assert_close(gated, _expected(encoder, change), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", FAMILIES)
def test_rows_of_a_batch_may_have_different_gates(name: str) -> None:
    encoder = tiny_models.encoder(name)
    generator = torch.Generator().manual_seed(0)
    scale = torch.rand(encoder.layers, encoder.heads, 3, generator=generator)
    offset = torch.randn(encoder.layers, encoder.heads, 3, SIZE, generator=generator)
    by_row = Gates(scale=scale, uniform=scale > 0.7, offset=offset)
    separate = [Gates(scale=scale[:, :, r], uniform=scale[:, :, r] > 0.7, offset=offset[:, :, r]) for r in range(3)]
    lengths = _batch(encoder).attention_mask.sum(1).tolist()
    expected = [_last_states(encoder, gates).split(lengths)[row] for row, gates in enumerate(separate)]
    torch.testing.assert_close(_last_states(encoder, by_row), torch.cat(expected), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_uniform_head_equals_a_head_with_zero_queries(name: str) -> None:
    """A head whose scores are all 0 attends equally to every visible token."""
    encoder = tiny_models.encoder(name)
    paths = PROJECTIONS[name]
    head = 2
    rows = slice(head * SIZE, (head + 1) * SIZE)

    def change(reference: Any) -> None:
        for query in _modules(reference, paths.query):
            (query.weight.data.T if paths.transposed else query.weight.data)[rows] = 0
            if query.bias is not None:
                query.bias.data[rows] = 0
        for bias in _modules(reference, "relative_attention_bias"):
            bias.weight.data[:, head] = 0

    uniform = torch.zeros(encoder.layers, encoder.heads, dtype=torch.bool)
    uniform[:, head] = True
    gated = _last_states(encoder, Gates(uniform=uniform))
    torch.testing.assert_close(gated, _expected(encoder, change), atol=1e-5, rtol=1e-4)
    assert float((gated - _last_states(encoder)).abs().max()) > 1e-2


@pytest.mark.parametrize("name", FAMILIES)
def test_the_attention_of_a_uniform_head_is_one_over_n(name: str) -> None:
    encoder = tiny_models.encoder(name)
    tokens = encoder.tokenise(tiny_models.inputs()[:3])
    uniform = torch.zeros(encoder.layers, encoder.heads, dtype=torch.bool)
    uniform[1, 3] = True
    activations: list[LayerActivations] = []
    with torch.inference_mode():
        encoder.with_gates(Gates(uniform=uniform)).forward(tiny_models.batch(tokens), on_layer=activations.append)
    for row, row_tokens in enumerate(tokens):
        n = len(row_tokens)
        visible = torch.ones(n, n)
        if name == "gpt2":
            visible = visible.tril()
        if name == "modernbert":
            position = torch.arange(n)
            visible = ((position[:, None] - position).abs() <= 3).float()
        expected = visible / visible.sum(-1, keepdim=True)
        attention = activations[1].attention[row]
        torch.testing.assert_close(attention[3, :n, :n], expected)
        assert float(attention[3, :n, n:].sum()) == 0
        assert float((attention[2, :n, :n] - expected).abs().max()) > 1e-2


@pytest.mark.parametrize("name", FAMILIES)
def test_gates_receive_gradients(name: str) -> None:
    """Against central differences, in double precision."""
    encoder = tiny_models.wrap_model(tiny_models.model(name).double(), name)
    batch = _batch(encoder)
    probe = torch.randn(encoder.width, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def score(scale: Tensor) -> Tensor:
        output = encoder.with_gates(Gates(scale=scale)).forward(batch, hidden=True)
        return (output.hidden_states[-1][batch.attention_mask.bool()] @ probe).tanh().sum()

    scale = (_ones(encoder) * 0.8).double().requires_grad_()
    (gradient,) = torch.autograd.grad(score(scale), scale)
    step, tolerance = tiny_models.step_and_tolerance(name)
    with torch.no_grad():
        for index in [(0, 0), (encoder.layers - 1, 3)]:
            up, down = scale.detach().clone(), scale.detach().clone()
            up[index] += step
            down[index] -= step
            difference = (score(up) - score(down)) / (2 * step)
            torch.testing.assert_close(gradient[index], difference, atol=tolerance, rtol=tolerance)
    assert bool((gradient != 0).all())


def _zeroed_second_token(encoder: TaskEncoder, *heads: tuple[int, int]) -> Tensor:
    """Zeroed values of the second token of every input, in these heads."""
    zeroed = torch.zeros(encoder.layers, encoder.heads, *_batch(encoder).input_ids.shape, dtype=torch.bool)
    for layer, head in heads:
        zeroed[layer, head, :, 1] = True
    return zeroed


@pytest.mark.parametrize("name", FAMILIES)
def test_zeroing_no_value_changes_nothing(name: str) -> None:
    encoder = tiny_models.encoder(name)
    torch.testing.assert_close(
        _last_states(encoder, Gates(zeroed_values=_zeroed_second_token(encoder))), _last_states(encoder), atol=0, rtol=0
    )


@pytest.mark.parametrize("name", FAMILIES)
def test_a_token_with_zeroed_values_contributes_nothing_to_these_heads(name: str) -> None:
    """Its contribution is missing from the output of these heads only; attention is unchanged."""
    encoder = tiny_models.encoder(name)
    gated_head = (1, 2)
    zeroed = Gates(zeroed_values=_zeroed_second_token(encoder, gated_head))
    ungated: list[Any] = []
    gated: list[Any] = []
    with torch.inference_mode():
        encoder.forward(_batch(encoder), on_layer=ungated.append)
        encoder.with_gates(zeroed).forward(_batch(encoder), on_layer=gated.append)
    for before, after in zip(ungated[:2], gated[:2], strict=True):
        expected = before.head_outputs.clone()
        layer, head = gated_head
        if before.layer == layer:
            contribution = before.attention[:, head, :, 1, None] * before.value[:, head, None, 1]
            expected[:, head] -= contribution
            assert float(contribution.abs().max()) > 1e-2
        torch.testing.assert_close(after.head_outputs, expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(after.attention, before.attention, atol=0, rtol=0)
    assert float((_last_states(encoder, zeroed) - _last_states(encoder)).abs().max()) > 1e-3


@pytest.mark.parametrize("name", FAMILIES)
def test_an_axis_of_one_stands_for_all_layers_or_heads(name: str) -> None:
    encoder = tiny_models.encoder(name)
    everywhere = [(layer, head) for layer in range(encoder.layers) for head in range(encoder.heads)]
    zeroed = _zeroed_second_token(encoder, *everywhere)
    torch.testing.assert_close(
        _last_states(encoder, Gates(zeroed_values=zeroed[:1, :1])),
        _last_states(encoder, Gates(zeroed_values=zeroed)),
        atol=0,
        rtol=0,
    )


def test_gates_of_another_shape_are_refused() -> None:
    with pytest.raises(Refusal, match="one value for each of 2 layers and 4 heads"):
        tiny_models.encoder("bert").with_gates(Gates(scale=torch.ones(4, 2)))
    with pytest.raises(Refusal, match="2 layers or 1 for all, 4 heads or 1 for all"):
        tiny_models.encoder("bert").with_gates(Gates(zeroed_values=torch.zeros(3, 4, 1, 5, dtype=torch.bool)))
