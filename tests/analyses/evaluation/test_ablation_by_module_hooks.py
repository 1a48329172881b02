"""Every intervention in every family, against plain forward hooks on the modules of an unpatched transformers model.

The reference model has eager attention and none of the package's hooks. A head is disabled by changing its columns of
the input of the output projection; uniform attention is a mean of value vectors; layers are moved in their list.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import tiny_models
from bertology.analyses.evaluation.ablation import (
    AblationMethod,
    AblationRunner,
    HeadAblation,
    LayerReordering,
    mean_head_outputs,
)
from bertology.analyses.evaluation.evaluation import Evaluation, EvaluationBatch
from bertology.analyses.evaluation.gradient_importance import head_gradients
from bertology.analyses.evaluation.head_ranking import gradient_importance
from bertology.arrays import BoolArray
from bertology.encoder.attention_hook import Gates
from bertology.encoder.encoder import ModelInputs, ModelOutput, TaskEncoder
from bertology.encoder.pruning import prune
from bertology.estimates.metrics import Counts

SIZE = tiny_models.WIDTH // tiny_models.HEADS
WINDOW = 3
"""Tokens to one side that ModernBERT's local layers see (`local_attention` is 6)."""
TEXTS = (
    "The keys to the cabinet are on the table.",
    "A dog!",
    ("She didn't believe that unbelievable story, did she?", "It rains."),
    ("It rains.", "We walked along the river and then, at last, we saw the lights."),
)
METHODS: tuple[AblationMethod, ...] = ("zero", "uniform", "mean")


@dataclass(frozen=True)
class Modules:
    """Where a family keeps its layers, its output projection and its value vectors.

    `value` may compute queries and keys as well: the value vectors are the last third of its output then.
    """

    layers: str
    output: str
    value: str
    all_in_one: bool = False
    shared_layers: bool = False


BERT = Modules("encoder.layer", "attention.output.dense", "attention.self.value")
DEBERTA = Modules("encoder.layer", "attention.output.dense", "attention.self.value_proj")
GPT2 = Modules("h", "attn.c_proj", "attn.c_attn", all_in_one=True)
MODULES = {
    "bert": BERT,
    "roberta": BERT,
    "xlm-roberta": BERT,
    "camembert": BERT,
    "electra": BERT,
    "distilbert": Modules("transformer.layer", "attention.out_lin", "attention.v_lin"),
    "albert": Modules("encoder.albert_layer_groups.0.albert_layers", "attention.dense", "attention.value", False, True),
    "mpnet": Modules("encoder.layer", "attention.attn.o", "attention.attn.v"),
    "deberta-v2": DEBERTA,
    "deberta-v2 with separate position projections and a convolution": DEBERTA,
    "deberta-v2 without relative positions": DEBERTA,
    "modernbert": Modules("layers", "attn.Wo", "attn.Wqkv", all_in_one=True),
    "gpt2": GPT2,
    "gpt2 scaled by layer": GPT2,
}
PRUNABLE = ["bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert"]
Change = Callable[[int, Tensor, Tensor], Tensor]
"""From the depth of a layer, its value vectors and its head outputs (row, token, head, size), to other head outputs."""


def test_every_family_has_a_reference() -> None:
    assert set(MODULES) == {*tiny_models.FAMILIES, *tiny_models.VARIANTS}


class _NoLayer(torch.nn.Module):
    """A layer whose output is its input."""

    def forward(self, hidden_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, None]:
        return hidden_states, None


class Reference:
    """An unpatched copy of an encoder's model, and the inputs it is compared on."""

    def __init__(self, name: str, kind: str = "ForSequenceClassification") -> None:
        self.paths = MODULES[name]
        self.encoder = tiny_models.encoder(name, kind)
        self.model = tiny_models.reference(self.encoder)
        self.model.config.output_attentions = False
        self.ablated: dict[tuple[str, bytes], dict[str, Tensor]] = {}
        self.inputs = tiny_models.batch(self.encoder.tokenise(tiny_models.inputs(TEXTS)))
        assert len(set(self.inputs.attention_mask.sum(1).tolist())) == len(TEXTS), "all rows have different lengths"

    @property
    def task_head(self) -> str:
        """The name of the model's only task head."""
        (name,) = self.encoder.task_heads
        return name

    @property
    def layers(self) -> Any:
        """The list of layers; ALBERT's has one."""
        return self.model.base_model.get_submodule(self.paths.layers)

    def forward(self, inputs: ModelInputs | None = None, *, gradients: bool = False) -> dict[str, Tensor]:
        """Logits by name."""
        inputs = inputs or self.inputs
        padding = self.model.config.pad_token_id or 0
        arguments = {
            "input_ids": inputs.input_ids.masked_fill(inputs.attention_mask == 0, padding),
            "attention_mask": inputs.attention_mask,
        }
        if getattr(self.model.config, "type_vocab_size", 0) > 1:
            arguments["token_type_ids"] = inputs.token_type_ids
        if self.encoder.causal:
            self.model.config.use_cache = False
        with torch.set_grad_enabled(gradients):
            returned = self.model(**arguments, return_dict=True)
        return {self.task_head: returned.logits}

    @contextmanager
    def changed(self, change: Change, value_change: Change | None = None) -> Generator[None]:
        """Head outputs, and perhaps value vectors, changed in every layer; depth counts calls."""
        depth, values = [0], [torch.empty(0)]

        def on_values(module: Any, arguments: Any, output: Tensor) -> Tensor:
            parts = list(output.chunk(3, -1)) if self.paths.all_in_one else [output]
            values[0] = parts[-1].unflatten(-1, (-1, SIZE))
            if value_change is not None:
                parts[-1] = value_change(depth[0], values[0], values[0]).flatten(2)
            return torch.cat(parts, -1)

        def on_output(module: Any, arguments: Any) -> Any:
            outputs = arguments[0].unflatten(-1, (-1, SIZE))
            depth[0] += 1
            return (change(depth[0] - 1, values[0], outputs).flatten(2), *arguments[1:])

        def restart(module: Any, arguments: Any) -> None:
            depth[0] = 0

        handles: list[Any] = [self.model.register_forward_pre_hook(restart)]
        for layer in self.layers:
            handles.append(layer.get_submodule(self.paths.value).register_forward_hook(on_values))
            handles.append(layer.get_submodule(self.paths.output).register_forward_pre_hook(on_output))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    @contextmanager
    def reordered(self, order: Sequence[int]) -> Generator[None]:
        """The layers in another order; those of ALBERT are one, called so many times."""
        config, layers = self.model.config, list(self.layers)
        n_layers = config.num_hidden_layers
        if self.paths.shared_layers:
            config.num_hidden_layers = len(order)
        else:
            self.replace_layers([layers[index] for index in order])
        try:
            yield
        finally:
            if self.paths.shared_layers:
                config.num_hidden_layers = n_layers
            else:
                self.replace_layers(layers)

    def replace_layers(self, layers: Sequence[Any]) -> None:
        """No layers are one that changes nothing: DeBERTa-v2 cannot do without."""
        if not layers and self.model.config.model_type == "deberta-v2":
            layers = [_NoLayer()]
        parent, _, name = self.paths.layers.rpartition(".")
        setattr(self.model.base_model.get_submodule(parent), name, torch.nn.ModuleList(layers))

    def visible(self, depth: int) -> Tensor:
        """(row, from, to) which tokens each token can attend to."""
        mask = self.inputs.attention_mask.bool()
        position = torch.arange(mask.shape[1])
        distance = position[:, None] - position
        visible = mask[:, None].expand(-1, mask.shape[1], -1)
        if self.model.config.model_type == "gpt2":
            visible = visible & (distance >= 0)
        if self.model.config.model_type == "modernbert" and depth > 0:
            visible = visible & (distance.abs() <= WINDOW)
        return visible

    @cached_property
    def mean_outputs(self) -> Tensor:
        """(layer, head, size) mean over all tokens, each text alone and without padding."""
        outputs: list[list[Tensor]] = [[] for _ in range(self.encoder.layers)]

        def collect(depth: int, values: Tensor, head_outputs: Tensor) -> Tensor:
            outputs[depth].append(head_outputs[0])
            return head_outputs

        with self.changed(collect):
            for row, n in enumerate(self.inputs.attention_mask.sum(1).tolist()):
                tensors = (self.inputs.input_ids, self.inputs.token_type_ids, self.inputs.attention_mask)
                self.forward(ModelInputs(*(tensor[row : row + 1, :n] for tensor in tensors)))
        return torch.stack([torch.cat(layer).mean(0) for layer in outputs])

    def ablate(self, method: AblationMethod, mask: BoolArray) -> dict[str, Tensor]:
        """Logits with the heads of a (layer, head) mask disabled, computed once for all tests."""
        key = (method, mask.tobytes())
        if key not in self.ablated:
            self.ablated[key] = self.forward_ablated(method, mask)
        return self.ablated[key]

    def forward_ablated(self, method: AblationMethod, mask: BoolArray) -> dict[str, Tensor]:
        def disable(depth: int, values: Tensor, head_outputs: Tensor) -> Tensor:
            if method == "zero":
                substitute = torch.zeros_like(head_outputs)
            elif method == "mean":
                substitute = self.mean_outputs[depth].expand_as(head_outputs)
            else:
                visible = self.visible(depth).float()
                weights = visible / visible.sum(-1, keepdim=True).clamp(min=1)
                substitute = torch.einsum("rft,rths->rfhs", weights, values)
            return torch.where(torch.tensor(mask[depth])[:, None], substitute, head_outputs)

        with self.changed(disable):
            return self.forward()

    def assert_same(self, actual: ModelOutput, expected: dict[str, Tensor]) -> None:
        """Logits equal to 1e-5, at tokens; perhaps only at the positions that are read."""
        for name, logits in expected.items():
            mask = self.inputs.attention_mask.bool()
            if actual.logit_positions is not None:
                rows = torch.arange(len(mask))[:, None]
                logits, mask = logits[rows, actual.logit_positions], mask[rows, actual.logit_positions]
            where = slice(None) if name == "label" else mask
            torch.testing.assert_close(actual.logits[name][where], logits[where], atol=1e-5, rtol=1e-5)


@cache
def reference(name: str, kind: str = "ForSequenceClassification") -> Reference:
    return Reference(name, kind)


def evaluation(reference: Reference) -> Evaluation:
    """An evaluation on the inputs; its loss is the cross-entropy of class 1 and only gradients need it."""

    def loss(output: ModelOutput) -> Tensor:
        return -output.logits["label"].log_softmax(-1)[:, 1]

    def score(output: ModelOutput) -> Counts:
        raise NotImplementedError

    rows = list(range(len(TEXTS)))
    positions = torch.tensor([[1, 4], [2, 0], [3, 3], [5, 1]]) if reference.task_head == "mlm" else None
    batch = EvaluationBatch(reference.inputs, rows, rows, loss, score, reference.task_head, positions)
    return Evaluation("sentence", "accuracy", tuple(rows), (batch,), 0)  # type: ignore[arg-type]


def head_masks(encoder: TaskEncoder) -> list[BoolArray]:
    """Every head, every layer, all heads but one, all heads, and two heads of two layers."""
    shape = (encoder.layers, encoder.heads)
    single = np.eye(shape[0] * shape[1], dtype=np.bool_).reshape(-1, *shape)
    layers = np.broadcast_to(np.eye(shape[0], dtype=np.bool_)[:, :, None], (shape[0], *shape))
    return [*single, *layers, *~single, np.ones(shape, np.bool_), single[1] | single[-2]]


def layer_orders(n: int) -> list[tuple[int, ...]]:
    """Every layer skipped, swapped with the next, repeated, and dropped with all above it; and all reversed."""
    layers = tuple(range(n))
    skipped = [layers[:i] + layers[i + 1 :] for i in layers]
    swapped = [(*layers[:i], i + 1, i, *layers[i + 2 :]) for i in layers[:-1]]
    repeated = [layers[: i + 1] + layers[i:] for i in layers]
    return [*skipped, *swapped, *repeated, *(layers[:i] for i in layers), layers[::-1]]


KINDS = [
    (name, kind)
    for name in MODULES
    for kind in ("ForSequenceClassification", "ForTokenClassification", "ForMaskedLM")
    if not (name.startswith("gpt2") and kind == "ForMaskedLM")
]


@pytest.mark.parametrize("full_passes", [False, True], ids=["resumed", "full passes"])
@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_disabled_heads(name: str, kind: str, full_passes: bool) -> None:
    by_hooks = reference(name, kind)
    encoder, batch = by_hooks.encoder, evaluation(by_hooks).batches[0]
    masks = head_masks(encoder)
    intact = by_hooks.forward()
    torch.testing.assert_close(
        mean_head_outputs(encoder, [b.inputs for b in evaluation(by_hooks).batches]),
        by_hooks.mean_outputs,
        atol=1e-5,
        rtol=1e-5,
    )
    for method in METHODS:
        runner = AblationRunner(encoder, method, by_hooks.mean_outputs if method == "mean" else None, full_passes)
        with torch.no_grad():
            outputs = dict(runner.outputs(batch, [HeadAblation(mask) for mask in masks]))
        by_hooks.assert_same(outputs[-1], intact)
        for index, mask in enumerate(masks):
            by_hooks.assert_same(outputs[index], by_hooks.ablate(method, mask))


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_moved_layers(name: str, kind: str) -> None:
    by_hooks = reference(name, kind)
    orders = layer_orders(by_hooks.encoder.layers)
    with torch.no_grad():
        runner = AblationRunner(by_hooks.encoder)
        outputs = dict(runner.outputs(evaluation(by_hooks).batches[0], [LayerReordering(order) for order in orders]))
    for index, order in enumerate(orders):
        with by_hooks.reordered(order):
            expected = by_hooks.forward()
        by_hooks.assert_same(outputs[index], expected)


@pytest.mark.parametrize("name", MODULES)
def test_scaled_shifted_and_zeroed(name: str) -> None:
    """Gates between 0 and 1, offsets, and tokens without value vectors; of each row another token."""
    by_hooks = reference(name)
    encoder, generator = by_hooks.encoder, torch.Generator().manual_seed(0)
    scale = torch.rand(encoder.layers, encoder.heads, generator=generator)
    offset = torch.randn(encoder.layers, encoder.heads, SIZE, generator=generator)
    zeroed = torch.rand(encoder.layers, encoder.heads, *by_hooks.inputs.input_ids.shape, generator=generator) < 0.3

    def gate(depth: int, values: Tensor, head_outputs: Tensor) -> Tensor:
        return head_outputs * scale[depth, :, None] + offset[depth]

    def zero(depth: int, values: Tensor, same_values: Tensor) -> Tensor:
        return values * ~zeroed[depth].permute(1, 2, 0)[..., None]

    with by_hooks.changed(gate, zero):
        expected = by_hooks.forward()
    with torch.no_grad():
        gated = encoder.with_gates(Gates(scale=scale, offset=offset, zeroed_values=zeroed)).forward(by_hooks.inputs)
    by_hooks.assert_same(gated, expected)


@pytest.mark.parametrize("name", PRUNABLE)
def test_removed_heads(name: str) -> None:
    by_hooks = reference(name)
    for mask in head_masks(by_hooks.encoder):
        with torch.no_grad():
            pruned = prune(by_hooks.encoder, ~mask).forward(by_hooks.inputs)
        by_hooks.assert_same(pruned, by_hooks.ablate("zero", mask))


@pytest.mark.parametrize("name", MODULES)
def test_importance_is_the_change_of_the_loss_by_the_gate(name: str) -> None:
    """|dL/dgate| against central differences of every head, in double precision where transformers can."""
    by_hooks = Reference(name)
    step, tolerance = 1e-2, 3e-4
    if name not in ("modernbert", "gpt2 scaled by layer"):
        by_hooks.model.double()
        step, tolerance = 1e-4, 1e-5

    def losses(layer: int, head: int, gate: float) -> Tensor:
        def scale(depth: int, values: Tensor, head_outputs: Tensor) -> Tensor:
            factor = torch.ones(by_hooks.encoder.heads, 1, dtype=head_outputs.dtype)
            factor[head] = gate if depth == layer else 1
            return head_outputs * factor

        with by_hooks.changed(scale):
            return -by_hooks.forward()["label"].log_softmax(-1)[:, 1]

    importance = head_gradients(by_hooks.encoder, evaluation(by_hooks)).gradient
    for layer, head in np.ndindex(importance.shape[1:]):
        difference = (losses(layer, head, 1 + step) - losses(layer, head, 1 - step)).abs() / (2 * step)
        np.testing.assert_allclose(importance[:, layer, head], difference.numpy(), atol=tolerance)


@pytest.mark.parametrize("name", MODULES)
def test_legacy_importance_is_that_of_the_released_code(name: str) -> None:
    """Michel et al.'s code: gradient times output, absolute at every token, summed and divided by the tokens."""
    by_hooks = reference(name)
    outputs: list[Tensor] = []

    def collect(depth: int, values: Tensor, head_outputs: Tensor) -> Tensor:
        outputs.append(head_outputs)
        return head_outputs

    with by_hooks.changed(collect):
        logits = by_hooks.forward(gradients=True)["label"]
    gradients = torch.autograd.grad(-logits.log_softmax(-1)[:, 1].sum(), outputs)
    by_token = [(output * gradient).sum(-1).abs() for output, gradient in zip(outputs, gradients, strict=True)]
    n_tokens = by_hooks.inputs.attention_mask.sum()
    expected = torch.stack([values.sum((0, 1)) / n_tokens for values in by_token]).detach().numpy()
    importance = gradient_importance(
        head_gradients(by_hooks.encoder, evaluation(by_hooks)), legacy=True, normalise=False
    )
    np.testing.assert_allclose(importance.mean, expected, atol=1e-6, rtol=1e-4)
    normalised = replace(importance, normalise=True).mean
    np.testing.assert_allclose(normalised, expected / np.linalg.norm(expected, axis=1, keepdims=True), rtol=1e-4)
