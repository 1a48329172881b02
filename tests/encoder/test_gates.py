"""Gates act as they say, in every family: judged by changing the weights of a second model by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

import models
from bertology.encoder.attend import Gates, LayerActivations
from bertology.encoder.encoder import Batch
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.errors import Refusal
from models import FAMILIES, HEADS

SIZE = models.WIDTH // HEADS


@dataclass(frozen=True)
class Projections:
    """Where a family keeps the weights that its heads' outputs and queries go through."""

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


def _batch(encoder: HuggingFaceEncoder) -> Batch:
    return models.batch(encoder.tokenise(models.inputs()[:3]))


def _last(encoder: HuggingFaceEncoder, gates: Gates | None = None) -> Tensor:
    batch = _batch(encoder)
    with torch.inference_mode():
        return encoder.gated(gates).run(batch, on_layer=lambda _: None, hidden=True).hidden[-1][batch.mask.bool()]


def _expected(encoder: HuggingFaceEncoder, change: Callable[[Any], None]) -> Tensor:
    reference = models.reference(encoder)
    change(reference)
    batch = _batch(encoder)
    arguments = {"input_ids": batch.ids, "attention_mask": batch.mask}
    pad = reference.config.pad_token_id or 0
    arguments["input_ids"] = batch.ids.masked_fill(batch.mask == 0, pad)
    with torch.inference_mode():
        return reference(**arguments).last_hidden_state[batch.mask.bool()]


def _ones(encoder: HuggingFaceEncoder) -> Tensor:
    return torch.ones(encoder.layers, encoder.heads)


def _modules(model: Any, ending: str) -> list[Any]:
    return [module for name, module in model.named_modules() if name.endswith(ending)]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_gate_of_ones_changes_nothing(name: str) -> None:
    encoder = models.encoder(name)
    torch.testing.assert_close(_last(encoder, Gates(scale=_ones(encoder))), _last(encoder), atol=0, rtol=0)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_gate_of_zero_changes_the_output(name: str) -> None:
    encoder = models.encoder(name)
    plain = _last(encoder)
    for layer in range(encoder.layers):
        for head in range(encoder.heads):
            scale = _ones(encoder)
            scale[layer, head] = 0
            assert float((_last(encoder, Gates(scale=scale)) - plain).abs().max()) > 1e-2


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("value", [0.0, 0.3])
def test_a_gate_is_its_value_times_the_head_in_the_output_projection(name: str, value: float) -> None:
    encoder = models.encoder(name)
    where = PROJECTIONS[name]
    for head in range(encoder.heads):
        layer = head % encoder.layers
        columns = slice(head * SIZE, (head + 1) * SIZE)

        def change(reference: Any, layer: int = layer, columns: slice = columns) -> None:
            projections = _modules(reference, where.output)
            weight = projections[0 if where.shared else layer].weight.data
            (weight.T if not where.transposed else weight)[columns] *= value

        scale = _ones(encoder)
        scale[slice(None) if where.shared else layer, head] = value
        torch.testing.assert_close(_last(encoder, Gates(scale=scale)), _expected(encoder, change), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_shift_is_a_bias_of_the_output_projection(name: str) -> None:
    """A head that always gives one vector: nothing of its own, and that vector through its part of the projection."""
    encoder = models.encoder(name)
    where, head, layer = PROJECTIONS[name], 2, 1
    columns = slice(head * SIZE, (head + 1) * SIZE)
    always = torch.randn(SIZE, generator=torch.Generator().manual_seed(0))

    def change(reference: Any) -> None:
        projection = _modules(reference, where.output)[0 if where.shared else layer]
        weight = projection.weight.data if where.transposed else projection.weight.data.T
        added = always @ weight[columns]
        projection.bias = torch.nn.Parameter(added + (0 if projection.bias is None else projection.bias.data))
        weight[columns] = 0

    layers = slice(None) if where.shared else layer
    scale, shift = _ones(encoder), torch.zeros(encoder.layers, encoder.heads, SIZE)
    scale[layers, head], shift[layers, head] = 0, always
    gated = _last(encoder, Gates(scale=scale, shift=shift))
    torch.testing.assert_close(gated, _expected(encoder, change), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_row_may_have_gates_of_its_own(name: str) -> None:
    encoder = models.encoder(name)
    generator = torch.Generator().manual_seed(0)
    scale = torch.rand(encoder.layers, encoder.heads, 3, generator=generator)
    shift = torch.randn(encoder.layers, encoder.heads, 3, SIZE, generator=generator)
    rows = Gates(scale=scale, uniform=scale > 0.7, shift=shift)
    each = [Gates(scale=scale[:, :, r], uniform=scale[:, :, r] > 0.7, shift=shift[:, :, r]) for r in range(3)]
    lengths = _batch(encoder).mask.sum(1).tolist()
    alone = [_last(encoder, gates).split(lengths)[row] for row, gates in enumerate(each)]
    torch.testing.assert_close(_last(encoder, rows), torch.cat(alone), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_uniform_head_is_a_head_without_queries(name: str) -> None:
    """A head whose scores are all 0 attends to every token it may see alike: the same, made by hand."""
    encoder = models.encoder(name)
    where = PROJECTIONS[name]
    head = 2
    rows = slice(head * SIZE, (head + 1) * SIZE)

    def change(reference: Any) -> None:
        for query in _modules(reference, where.query):
            (query.weight.data.T if where.transposed else query.weight.data)[rows] = 0
            if query.bias is not None:
                query.bias.data[rows] = 0
        for bias in _modules(reference, "relative_attention_bias"):
            bias.weight.data[:, head] = 0

    uniform = torch.zeros(encoder.layers, encoder.heads, dtype=torch.bool)
    uniform[:, head] = True
    gated = _last(encoder, Gates(uniform=uniform))
    torch.testing.assert_close(gated, _expected(encoder, change), atol=1e-5, rtol=1e-4)
    assert float((gated - _last(encoder)).abs().max()) > 1e-2


@pytest.mark.parametrize("name", FAMILIES)
def test_a_uniform_head_shows_one_over_n(name: str) -> None:
    encoder = models.encoder(name)
    pieces = encoder.tokenise(models.inputs()[:3])
    uniform = torch.zeros(encoder.layers, encoder.heads, dtype=torch.bool)
    uniform[1, 3] = True
    seen: list[LayerActivations] = []
    with torch.inference_mode():
        encoder.gated(Gates(uniform=uniform)).run(models.batch(pieces), on_layer=seen.append)
    for row, one in enumerate(pieces):
        n = len(one)
        visible = torch.ones(n, n)
        if name == "gpt2":
            visible = visible.tril()
        if name == "modernbert":
            place = torch.arange(n)
            visible = ((place[:, None] - place).abs() <= 3).float()
        expected = visible / visible.sum(-1, keepdim=True)
        torch.testing.assert_close(seen[1].attention[row, 3, :n, :n], expected)
        assert float(seen[1].attention[row, 3, :n, n:].sum()) == 0
        assert float((seen[1].attention[row, 2, :n, :n] - expected).abs().max()) > 1e-2


@pytest.mark.parametrize("name", FAMILIES)
def test_learned_gates_receive_the_gradient(name: str) -> None:
    """Against central differences, in double precision."""
    plain = models.model(name).double()
    encoder = models.wrapped(plain, name)
    batch = _batch(encoder)
    probe = torch.randn(encoder.width, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def score(scale: Tensor) -> Tensor:
        output = encoder.gated(Gates(scale=scale)).run(batch, hidden=True)
        return (output.hidden[-1][batch.mask.bool()] @ probe).tanh().sum()

    scale = (_ones(encoder) * 0.8).double().requires_grad_()
    (gradient,) = torch.autograd.grad(score(scale), scale)
    step, tolerance = models.step_and_tolerance(name)
    with torch.no_grad():
        for place in [(0, 0), (encoder.layers - 1, 3)]:
            up, down = scale.detach().clone(), scale.detach().clone()
            up[place] += step
            down[place] -= step
            difference = (score(up) - score(down)) / (2 * step)
            torch.testing.assert_close(gradient[place], difference, atol=tolerance, rtol=tolerance)
    assert bool((gradient != 0).all())


def _silent(encoder: HuggingFaceEncoder, *heads: tuple[int, int]) -> Tensor:
    """The second piece of every input, silent in these heads."""
    silent = torch.zeros(encoder.layers, encoder.heads, *_batch(encoder).ids.shape, dtype=torch.bool)
    for layer, head in heads:
        silent[layer, head, :, 1] = True
    return silent


@pytest.mark.parametrize("name", FAMILIES)
def test_silencing_nothing_changes_nothing(name: str) -> None:
    encoder = models.encoder(name)
    torch.testing.assert_close(_last(encoder, Gates(silent=_silent(encoder))), _last(encoder), atol=0, rtol=0)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_silent_piece_gives_nothing_to_the_heads_it_is_silent_in(name: str) -> None:
    """Its share is missing from those heads' output, and from no other head's; attention stays as it was."""
    encoder = models.encoder(name)
    place = (1, 2)
    plain: list[Any] = []
    gated: list[Any] = []
    with torch.inference_mode():
        encoder.run(_batch(encoder), on_layer=plain.append)
        encoder.gated(Gates(silent=_silent(encoder, place))).run(_batch(encoder), on_layer=gated.append)
    for before, after in zip(plain[:2], gated[:2], strict=True):
        expected = before.context.clone()
        if before.layer == place[0]:
            share = before.attention[:, place[1], :, 1, None] * before.value[:, place[1], None, 1]
            expected[:, place[1]] -= share
            assert float(share.abs().max()) > 1e-2
        torch.testing.assert_close(after.context, expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(after.attention, before.attention, atol=0, rtol=0)
    assert float((_last(encoder, Gates(silent=_silent(encoder, place))) - _last(encoder)).abs().max()) > 1e-3


@pytest.mark.parametrize("name", FAMILIES)
def test_an_axis_of_one_stands_for_all_layers_or_heads(name: str) -> None:
    encoder = models.encoder(name)
    everywhere = [(layer, head) for layer in range(encoder.layers) for head in range(encoder.heads)]
    whole = _silent(encoder, *everywhere)
    torch.testing.assert_close(
        _last(encoder, Gates(silent=whole[:1, :1])), _last(encoder, Gates(silent=whole)), atol=0, rtol=0
    )


def test_gates_of_another_shape_are_refused() -> None:
    with pytest.raises(Refusal, match="one value for each of 2 layers and 4 heads"):
        models.encoder("bert").gated(Gates(scale=torch.ones(4, 2)))
    with pytest.raises(Refusal, match="2 layers or 1 for all, 4 heads or 1 for all"):
        models.encoder("bert").gated(Gates(silent=torch.zeros(3, 4, 1, 5, dtype=torch.bool)))
