"""Relevance of input tokens to a model's output: by attention, by gradients, by input ablation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from bertology.arrays import Array, BoolArray, FloatArray
from bertology.encoder.encoder import Encoder
from bertology.encoder.token_batch import TokenBatch
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.numerics.attention_rollout import AttentionRollout, Fusion, residual_attention
from bertology.numerics.maximum_flow import layered_flows
from bertology.recording.plan import default_tokens_per_batch, token_batches
from bertology.recording.recording import Recording

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations
    from bertology.encoder.encoder import ModelInputs, ModelOutput

RelevanceTarget = Literal["auto", "class", "masked", "cls", "mean"]

CLASS_TASK_HEADS = ("label", "choice", "nsp", "sop")
LAYER_METHODS = ("raw attention", "rollout", "flow")
GRADIENT, GRADIENT_X_INPUT = "gradient", "gradient x input"
INPUT_ABLATION, PROXIMITY, TOKEN_RARITY = "input ablation", "proximity", "token rarity"


@dataclass(frozen=True)
class RelevanceConfig:
    """The output that tokens are attributed to and the parameters; `layers` (from 1) are traced by attention."""

    target: RelevanceTarget
    residual_weight: float
    fusion: Fusion
    layers: tuple[int, ...]
    n_directions: int
    sample_size: int
    max_length: int
    seed: int


class TokenRelevance(NamedTuple):
    """Relevance of the tokens of one input.

    `ids` are the ids of all tokens, `positions` those of the non-special, unmasked tokens that are compared.
    `masked_position` is the masked token to predict, or -1. `by_layer` has (layer, token) relevance of each attention
    method, `by_method` (token,) relevance of all other methods.
    """

    input_index: int
    ids: Array
    positions: Array
    masked_position: int
    by_layer: dict[str, FloatArray]
    by_method: dict[str, FloatArray]


def resolve_target(target: RelevanceTarget, encoder: Encoder) -> RelevanceTarget:
    """The attribution target, with `auto` replaced by the first that the model has; unavailable targets are refused."""
    if encoder.mask_token_id is None:
        raise Refusal(
            f"{encoder.name} has no mask token",
            "a model with a mask token, which replaces tokens in input ablation",
            "Choose another model",
        )
    has_mlm = "mlm" in encoder.task_heads
    if target == "auto":
        target = "class" if encoder.task_heads & {"label", "choice"} else "masked" if has_mlm else "mean"
    has_class = bool(encoder.task_heads & set(CLASS_TASK_HEADS))
    if (target == "class" and not has_class) or (target == "masked" and not has_mlm):
        present = ", ".join(sorted(encoder.task_heads)) or "none"
        raise Refusal(
            f"{encoder.name} has no task head for --attribution-target {target} (it has: {present})",
            "a classification task head for `class`, or a masked-language-model head for `masked`",
            "Use --attribution-target mean, which needs no task head, or choose another model",
        )
    return target


def token_relevances(recording: Recording, encoder: Encoder, config: RelevanceConfig) -> Iterator[TokenRelevance]:
    """Token relevance of a sample of the inputs with at most `max_length` tokens, in no particular order."""
    for indices, batch in token_batches(recording, encoder, sample_size=config.sample_size, seed=config.seed):
        short = [
            row for row, recorded_input in enumerate(batch.inputs) if len(recorded_input.tokens) <= config.max_length
        ]
        if short:
            short_batch = TokenBatch([batch.inputs[row] for row in short], batch.device)
            yield from _batch_relevances([indices[row] for row in short], short_batch, encoder, config)


def _batch_relevances(
    input_indices: Sequence[int], batch: TokenBatch, encoder: Encoder, config: RelevanceConfig
) -> Iterator[TokenRelevance]:
    relevance_batch = _build_relevance_batch(batch, encoder, config)
    with_residual: list[Tensor] = []
    raw: list[Tensor] = []

    def collect_attention(layer: LayerActivations) -> None:
        attention = layer.attention.float()
        with_residual.append(residual_attention(attention, config.fusion, config.residual_weight))
        raw.append(residual_attention(attention, config.fusion, 0.0))

    with torch.no_grad():
        output = encoder.forward(relevance_batch.inputs, on_layer=collect_attention, hidden=True)
        baseline = relevance_batch.reader(output)
    gradients = _gradients(relevance_batch, encoder, config)
    for row, recorded_input in enumerate(batch.inputs):
        tokens = recorded_input.tokens
        length = len(tokens)
        is_masked = relevance_batch.masked_mask[row, :length].cpu().numpy()
        positions = np.flatnonzero((tokens.special_kinds == SpecialToken.NONE) & ~is_masked)
        weights = relevance_batch.weights[row, :length].cpu().double().numpy()
        row_attention, row_raw = (
            [layer[row, :length, :length].cpu().double() for layer in layers] for layers in (with_residual, raw)
        )
        by_layer = {
            name: np.stack([by_depth[layer - 1] for layer in config.layers])[:, positions]
            for name, by_depth in _attention_relevance(weights, row_attention, row_raw, config.layers).items()
        }
        by_method = {name: values[row].cpu().double().numpy()[positions] for name, values in gradients.items()}
        by_method[INPUT_ABLATION] = _ablation_relevance(relevance_batch, encoder, row, positions, baseline[row])
        by_method[TOKEN_RARITY] = tokens.ids[positions].astype(np.float64)
        if weights.max() == 1:
            by_method[PROXIMITY] = -np.abs(positions - weights.argmax()).astype(np.float64)
        masked_position = int(is_masked.argmax()) if is_masked.any() else -1
        yield TokenRelevance(input_indices[row], tokens.ids, positions, masked_position, by_layer, by_method)


def _attention_relevance(
    weights: FloatArray, attention_with_residual: list[Tensor], raw_attention: list[Tensor], layers: tuple[int, ...]
) -> dict[str, dict[int, FloatArray]]:
    """(token,) relevance by method and layer (from 0), for an output that is a weighted sum of the layer's states."""
    capacities = np.stack([layer.numpy() for layer in attention_with_residual])
    output_layer = np.tile(weights, (len(weights), 1))  # the output as one more node, with the weights as capacities
    is_single = weights.max() == 1
    relevance: dict[str, dict[int, FloatArray]] = {name: {} for name in LAYER_METHODS}
    rollout = AttentionRollout()
    for depth, layer in enumerate(attention_with_residual):
        matrix = rollout.add(layer)
        if depth + 1 in layers:
            relevance["raw attention"][depth] = weights @ raw_attention[depth].numpy()
            relevance["rollout"][depth] = weights @ matrix.numpy()
            below = (
                capacities[: depth + 1] if is_single else np.concatenate([capacities[: depth + 1], output_layer[None]])
            )
            relevance["flow"][depth] = layered_flows(below, int(weights.argmax()) if is_single else 0)
    return relevance


class _RelevanceBatch(NamedTuple):
    """Model inputs and the output that tokens are attributed to.

    `weights` is (batch, token): the weights of the last layer's states in the output; `masked_mask` the masked tokens
    to predict.
    """

    batch: TokenBatch
    inputs: ModelInputs
    masked_mask: Tensor
    weights: Tensor
    reader: _OutputReader


class _OutputReader(NamedTuple):
    """Reads the score of a class, the score of a masked token, or a vector; `class_ids` is (batch,)."""

    task_head: str | None
    weights: Tensor
    class_ids: Tensor | None

    def __call__(self, output: ModelOutput) -> Tensor:
        """(batch, size): size 1 for a score."""
        if self.task_head is None or self.class_ids is None:
            return (output.hidden_states[-1].float() * self.weights.unsqueeze(-1)).sum(1)
        logits = output.logits[self.task_head]
        if self.task_head == "mlm":
            logits = logits[torch.arange(len(logits), device=logits.device), self.weights.argmax(1)]
        # A multiple-choice option has a single score, whose log-probability would always be 0.
        scores = logits.float().log_softmax(-1) if logits.shape[-1] > 1 else logits.float()
        return scores.gather(-1, self.class_ids.unsqueeze(-1))

    def for_row(self, row: int, n_copies: int) -> _OutputReader:
        """The reader of `n_copies` variants of one input."""
        class_ids = None if self.class_ids is None else self.class_ids[row].expand(n_copies)
        return _OutputReader(self.task_head, self.weights[row].expand(n_copies, -1), class_ids)


def _build_relevance_batch(batch: TokenBatch, encoder: Encoder, config: RelevanceConfig) -> _RelevanceBatch:
    inputs, no_mask = batch.model_inputs, torch.zeros_like(batch.token_mask)
    if config.target == "mean":
        uniform = batch.token_mask.float() / batch.lengths[:, None]
        return _RelevanceBatch(batch, inputs, no_mask, uniform, _OutputReader(None, uniform, None))
    if config.target == "masked":
        flags = [_sample_masked_token(i.tokens.ids, i.tokens.special_kinds, config.seed) for i in batch.inputs]
        masked = batch.pad_flags(flags)
        masked_ids = torch.where(masked, encoder.mask_token_id or 0, inputs.input_ids)
        gold_ids = (inputs.input_ids * masked).sum(1)
        reader = _OutputReader("mlm", masked.float(), gold_ids)
        return _RelevanceBatch(batch, replace(inputs, input_ids=masked_ids), masked, masked.float(), reader)
    summary = _summary_token_weights(batch, encoder.causal)
    if config.target == "cls":
        return _RelevanceBatch(batch, inputs, no_mask, summary, _OutputReader(None, summary, None))
    task_head = next(name for name in CLASS_TASK_HEADS if name in encoder.task_heads)
    with torch.no_grad():
        predicted = encoder.forward(inputs).logits[task_head].argmax(-1)
    return _RelevanceBatch(batch, inputs, no_mask, summary, _OutputReader(task_head, summary, predicted))


def _summary_token_weights(batch: TokenBatch, causal: bool) -> Tensor:
    """(batch, token) 1 at the state that sentence-level task heads read: the first, or the last of a causal model."""
    positions = batch.lengths - 1 if causal else torch.zeros_like(batch.lengths)
    return torch.nn.functional.one_hot(positions, batch.padded_length).float()


def _sample_masked_token(ids: Array, special_kinds: Array, seed: int) -> BoolArray:
    """One random non-special token, which depends only on the tokens and the seed, not on batches or their order."""
    key = hashlib.sha256(b"masked" + ids.tobytes() + seed.to_bytes(8, "little")).digest()
    flags: BoolArray = np.zeros(len(ids), np.bool_)
    flags[np.random.default_rng(list(key)).permutation(np.flatnonzero(special_kinds == SpecialToken.NONE))[:1]] = True
    return flags


def _gradients(relevance_batch: _RelevanceBatch, encoder: Encoder, config: RelevanceConfig) -> dict[str, Tensor]:
    """(batch, token) ‖∂s/∂x‖ and |x ∂s/∂x|, where x is a token's state before the first layer.

    For a vector, the root mean square over random directions, which estimates the norm of the Jacobian.
    """
    with torch.enable_grad():
        output = encoder.forward(relevance_batch.inputs, hidden=True)
        scores, states = relevance_batch.reader(output), output.hidden_states[0]
        directions = torch.ones(1, 1)
        if scores.shape[-1] > 1:
            generator = torch.Generator().manual_seed(config.seed)
            directions = torch.randn(config.n_directions, scores.shape[-1], generator=generator)
        squared_norms, squared_products = (torch.zeros(states.shape[:2], device=states.device) for _ in range(2))
        for direction in directions.to(scores):
            (gradient,) = torch.autograd.grad((scores @ direction).sum(), states, retain_graph=True)
            squared_norms += gradient.float().square().sum(-1) / len(directions)
            squared_products += (gradient * states.detach()).float().sum(-1).square() / len(directions)
    return {GRADIENT: squared_norms.sqrt(), GRADIENT_X_INPUT: squared_products.sqrt()}


def _ablation_relevance(
    relevance_batch: _RelevanceBatch, encoder: Encoder, row: int, positions: Array, baseline: Tensor
) -> FloatArray:
    """(token,) change of the output if a token is replaced by the mask token."""
    inputs = relevance_batch.inputs
    length = len(relevance_batch.batch.inputs[row].tokens)
    changes: list[Tensor] = [torch.zeros(0)]
    chunk_size = max(1, default_tokens_per_batch(encoder.device) // length)
    for start in range(0, len(positions), chunk_size):
        chunk = torch.from_numpy(positions[start : start + chunk_size]).to(inputs.input_ids.device)
        ids, types, mask = (
            tensor[row, :length].repeat(len(chunk), 1)
            for tensor in (inputs.input_ids, inputs.token_type_ids, inputs.attention_mask)
        )
        ids[torch.arange(len(chunk), device=ids.device), chunk] = encoder.mask_token_id or 0
        reader = relevance_batch.reader.for_row(row, len(chunk))
        reader = reader._replace(weights=reader.weights[:, :length])
        ablated = replace(inputs, input_ids=ids, token_type_ids=types, attention_mask=mask)
        with torch.no_grad():
            output = reader(encoder.forward(ablated, hidden=reader.task_head is None))
        changes.append((output - baseline).norm(dim=-1).cpu())
    return torch.cat(changes).double().numpy()
