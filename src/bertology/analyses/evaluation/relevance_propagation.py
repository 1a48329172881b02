"""Layer-wise relevance propagation (bach2015) to attention heads, as in voita2019.

The relevance of a neuron is distributed over its inputs in proportion to their contributions: for a linear map
v = W u + b the proportion of u_i is W_vi u_i / v and that of the bias b / v, with a small epsilon in the denominator;
non-linearities pass relevance on unchanged. Attention weights, and the standard deviation in a LayerNorm, are treated
as weights of linear maps and receive no relevance. The factors of a product, as in ModernBERT's gated feed-forward
block, receive half of its relevance each; shares in proportion to the factors, as in the paper, are unbounded where
these cancel.

The backward pass carries relevance divided by value. For sums and for products with weights this is the ordinary
gradient, so only the other operations need a modified backward pass. Modules are modified by hooks; activations that a
model calls as functions, such as the tanh of RoBERTa's classifier, and products by a mode of torch.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from bertology.analyses.evaluation.evaluation import MLM, Evaluation, EvaluationBatch
from bertology.arrays import FloatArray
from bertology.encoder.attention_hook import LayerActivations
from bertology.encoder.encoder import ModelOutput, TaskEncoder

PropagationRule = Callable[[Any, tuple[Any, ...], Any], Tensor]

EPSILON = 1e-5
TINY = 1e-12
NEGLIGIBLE_RELEVANCE = 1e-6


def head_relevance(encoder: TaskEncoder, evaluation: Evaluation) -> FloatArray:
    """(example, layer, head) share of a head in the absolute relevance of its layer's heads, 0 to 1.

    The shares of a layer sum to 1. They are NaN if the layer's relevance is less than a millionth of another layer's.
    """
    shares = np.full((len(evaluation.examples), encoder.layers, encoder.heads), np.nan)
    for batch in evaluation.batches:
        relevance = torch.zeros(len(batch.examples), encoder.layers, encoder.heads, dtype=torch.float64)
        row_relevance = _head_relevance(encoder, evaluation, batch).double().cpu()
        relevance.index_add_(0, torch.tensor(batch.example_of_row), row_relevance)
        absolute = relevance.abs().numpy()
        total = absolute.sum(-1, keepdims=True)
        is_relevant = total > NEGLIGIBLE_RELEVANCE * total.max(1, keepdims=True)
        shares[batch.examples] = np.divide(absolute, total, out=np.full_like(absolute, np.nan), where=is_relevant)
    return shares


def _head_relevance(encoder: TaskEncoder, evaluation: Evaluation, batch: EvaluationBatch) -> Tensor:
    """(row, layer, head) relevance of each head's output, summed over tokens."""
    head_outputs: list[Tensor] = []

    def collect_head_outputs(layer: LayerActivations) -> None:
        assert layer.head_outputs is not None, "a forward pass computes head outputs"
        detach_attention(layer)
        head_outputs.append(layer.head_outputs)

    with torch.enable_grad(), lrp_rules(encoder.model):
        output = encoder.forward(batch.inputs, on_layer=collect_head_outputs)
        scores = predicted_scores(output, batch, evaluation.task, encoder.mask_token_id)
        gradients = torch.autograd.grad(scores, head_outputs)
    relevance = [(o.detach() * g).sum((-1, -2)) for o, g in zip(head_outputs, gradients, strict=True)]
    return torch.stack(relevance, 1)


def predicted_scores(output: ModelOutput, batch: EvaluationBatch, task: str, mask_token_id: int | None) -> Tensor:
    """The sum of the logits of the model's predictions: one per row, masked token or word."""
    match task:
        case "mlm":
            return output.logits[MLM][batch.inputs.input_ids == mask_token_id].amax(-1).sum()
        case "token":
            return output.logits["token"][batch.inputs.attention_mask.bool()].amax(-1).sum()
        case "qa":
            logits = (output.logits[f"answer_{end}"] for end in ("start", "end"))
            token_mask = batch.inputs.attention_mask.bool()
            return torch.stack([end.masked_fill(~token_mask, -torch.inf).amax(-1).sum() for end in logits]).sum()
        case "choice":
            return output.logits["choice"].sum()
        case _:
            return output.logits["label"].amax(-1).sum()


def detach_attention(layer: LayerActivations) -> None:
    """Stop relevance at the attention weights: it flows to the value vectors only."""
    if layer.attention.requires_grad:
        layer.attention.register_hook(torch.zeros_like)


@contextmanager
def lrp_rules(model: nn.Module) -> Generator[None]:
    """Let the model's backward pass compute relevance divided by value instead of gradients."""
    rules = [(module, rule) for module in model.modules() if (rule := _propagation_rule(module)) is not None]
    handles = [module.register_forward_hook(rule) for module, rule in rules]
    try:
        with _FunctionRules():
            yield
    finally:
        for handle in handles:
            handle.remove()


ACTIVATIONS = {
    torch.tanh,
    Tensor.tanh,
    torch.sigmoid,
    Tensor.sigmoid,
    torch.relu,
    Tensor.relu,
    nn.functional.relu,
    nn.functional.gelu,
    nn.functional.silu,
    nn.functional.tanh,
    nn.functional.sigmoid,
}
PRODUCTS = {torch.mul, torch.multiply, Tensor.mul, Tensor.multiply, Tensor.__mul__}


class _FunctionRules(TorchFunctionMode):
    """The rules for activations and products that are not modules."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        output = func(*args, **(kwargs or {}))
        if func in ACTIVATIONS:
            return _activation_rule(None, args or ((kwargs or {})["input"],), output)
        if func in PRODUCTS and _depends_on_input(args[0]) and _depends_on_input(args[1]):
            first, second = args
            return (first * second.detach() + first.detach() * second) / 2
        return output


def _depends_on_input(factor: Any) -> bool:
    return isinstance(factor, Tensor) and factor.requires_grad and not isinstance(factor, nn.Parameter)


def _propagation_rule(module: nn.Module) -> PropagationRule | None:
    if isinstance(module, nn.LayerNorm):
        return _layer_norm_rule
    if isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D":
        return _linear_rule
    is_activation = type(module).__module__ in {"torch.nn.modules.activation", "transformers.activations"}
    return _activation_rule if is_activation else None


def _linear_rule(module: Any, inputs: tuple[Any, ...], output: Any) -> Tensor:
    value: Tensor = output.detach()
    return _ScaleGradient.apply(output, value / (value + EPSILON * torch.where(value < 0, -1.0, 1.0)))


def _activation_rule(module: Any, inputs: tuple[Any, ...], output: Any) -> Tensor:
    """The activation as a product of its input with a constant, so that all relevance passes to the input."""
    before: Tensor = inputs[0]
    value = before.detach()
    is_zero = value.abs() < TINY
    return before * torch.where(is_zero, 0.0, output.detach() / torch.where(is_zero, 1.0, value))


def _layer_norm_rule(module: Any, inputs: tuple[Any, ...], output: Any) -> Tensor:
    """The LayerNorm as a linear map with a constant standard deviation."""
    before: Tensor = inputs[0]
    axes = tuple(range(-len(module.normalized_shape), 0))
    centred = before - before.mean(axes, keepdim=True)
    inverse_std = (before.detach().var(axes, unbiased=False, keepdim=True) + module.eps).rsqrt()
    scaled = centred * inverse_std if module.weight is None else centred * inverse_std * module.weight
    return scaled if module.bias is None else scaled + module.bias


class _ScaleGradient(torch.autograd.Function):
    """Identity whose gradient is multiplied by a factor."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, factor: Tensor) -> Tensor:
        ctx.save_for_backward(factor)
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (factor,) = ctx.saved_tensors
        return gradients[0] * factor, None
