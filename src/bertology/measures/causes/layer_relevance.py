"""How much of a prediction went through each head? Layer-wise relevance propagation (bach2015) as voita2019 have it.

What a neuron is worth is handed down in the shares that its inputs have in it: of a linear map v = W u + b the share of
u_i is W_vi u_i / v, that of the bias b / v, with a small epsilon in the denominator; non-linearities hand on what they
get. Attention maps, and the standard deviation in a LayerNorm, are the weights of linear maps and get nothing.

Relevance is carried as what a neuron is worth over its value. For sums and products with weights that is what a
gradient does, so that all that is left to do is to change the backward pass where it would do something else.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bertology.encoder.attend import LayerActivations
from bertology.encoder.encoder import Output
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.measures.causes.examination import MASKED, Examination, Sheet

Floats = NDArray[np.float64]
Rule = Callable[[Any, tuple[Any, ...], Any], Tensor]

EPSILON = 1e-5
TINY = 1e-12
NOTHING = 1e-6


def head_relevance(encoder: HuggingFaceEncoder, examination: Examination) -> Floats:
    """(item, layer, head) the share of a head in what its layer's heads are worth to the prediction, 0 to 1.

    Relevance has a sign, and shares are taken of its size: those of a layer add up to 1. NaN where a layer's heads are
    worth nothing, which is less than a millionth of what those of another layer are worth.
    """
    found = np.full((len(examination.items), encoder.layers, encoder.heads), np.nan)
    for sheet in examination.sheets:
        worth = torch.zeros(len(sheet.items), encoder.layers, encoder.heads, dtype=torch.float64)
        worth.index_add_(0, torch.tensor(sheet.rows), _worth(encoder, examination, sheet).double().cpu())
        sizes = worth.abs().numpy()
        total = sizes.sum(-1, keepdims=True)
        something = total > NOTHING * total.max(1, keepdims=True)
        found[sheet.items] = np.divide(sizes, total, out=np.full_like(sizes, np.nan), where=something)
    return found


def _worth(encoder: HuggingFaceEncoder, examination: Examination, sheet: Sheet) -> Tensor:
    """(row, layer, head) the relevance of each head's output, over all pieces."""
    contexts: list[Tensor] = []

    def see(layer: LayerActivations) -> None:
        assert layer.context is not None, "a forward pass has one"
        hand_nothing_to_maps(layer)
        contexts.append(layer.context)

    with torch.enable_grad(), relevance_rules(encoder.model):
        output = encoder.run(sheet.shown, on_layer=see)
        slopes = torch.autograd.grad(predicted(output, sheet, examination.task, encoder.mask_id), contexts)
    worths = [(context.detach() * slope).sum((-1, -2)) for context, slope in zip(contexts, slopes, strict=True)]
    return torch.stack(worths, 1)


def predicted(output: Output, sheet: Sheet, task: str, mask_id: int | None) -> Tensor:
    """The scores of what the model predicts, before the softmax: one a row, hidden piece or word."""
    match task:
        case "mlm":
            return output.logits[MASKED][sheet.shown.ids == mask_id].amax(-1).sum()
        case "token":
            return output.logits["token"][sheet.shown.mask.bool()].amax(-1).sum()
        case "qa":
            scores = (output.logits[f"answer_{end}"] for end in ("start", "end"))
            real = sheet.shown.mask.bool()
            return torch.stack([end.masked_fill(~real, -torch.inf).amax(-1).sum() for end in scores]).sum()
        case "choice":
            return output.logits["choice"].sum()
        case _:
            return output.logits["label"].amax(-1).sum()


def hand_nothing_to_maps(layer: LayerActivations) -> None:
    """What a map has brought together is worth what the values were: the map itself gets nothing of it."""
    if layer.attention.requires_grad:
        layer.attention.register_hook(torch.zeros_like)


@contextmanager
def relevance_rules(model: nn.Module) -> Generator[None]:
    """While this lasts, what comes back through the model is relevance over value, and no gradient."""
    ruled = [(module, rule) for module in model.modules() if (rule := _rule_for(module)) is not None]
    handles = [module.register_forward_hook(rule) for module, rule in ruled]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _rule_for(module: nn.Module) -> Rule | None:
    if isinstance(module, nn.LayerNorm):
        return _normed
    if isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D":
        return _linear
    kind = type(module).__module__
    return _active if kind in {"torch.nn.modules.activation", "transformers.activations"} else None


def _linear(module: Any, given: tuple[Any, ...], output: Any) -> Tensor:
    value: Tensor = output.detach()
    return _Scaled.apply(output, value / (value + EPSILON * torch.where(value < 0, -1.0, 1.0)))


def _active(module: Any, given: tuple[Any, ...], output: Any) -> Tensor:
    """As a product with a number: what comes back is handed on to the input whole."""
    before: Tensor = given[0]
    value = before.detach()
    flat = value.abs() < TINY
    return before * torch.where(flat, 0.0, output.detach() / torch.where(flat, 1.0, value))


def _normed(module: Any, given: tuple[Any, ...], output: Any) -> Tensor:
    """As a linear map, the standard deviation being one of its weights."""
    before: Tensor = given[0]
    axes = tuple(range(-len(module.normalized_shape), 0))
    centred = before - before.mean(axes, keepdim=True)
    scale = (before.detach().var(axes, unbiased=False, keepdim=True) + module.eps).rsqrt()
    scaled = centred * scale if module.weight is None else centred * scale * module.weight
    return scaled if module.bias is None else scaled + module.bias


class _Scaled(torch.autograd.Function):
    """The value as it is; what comes back is multiplied."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, factor: Tensor) -> Tensor:
        ctx.save_for_backward(factor)
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        (factor,) = ctx.saved_tensors
        return slopes[0] * factor, None
