"""Protocols of encoders: models that map tokens to activations.

Structural types with few members. The runtime checks are those of `typing_extensions`: they look members up without
evaluating properties, so that `isinstance` never hashes the weights for `fingerprint`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import Protocol, runtime_checkable

from bertology.arrays import Array, BoolArray
from bertology.corpus.example import TextInput
from bertology.encoder.tokens import TokenisedInput
from bertology.errors import Refusal

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import Gates, LayerActivations
    from bertology.encoder.tokens import Tokeniser


@dataclass(frozen=True)
class ModelInputs:
    """Token ids, token types and attention mask of a batch, padded on the right: each (batch, token).

    `known_padding` says whether there is padding, where this is known without asking the device.
    """

    input_ids: Tensor
    token_type_ids: Tensor
    attention_mask: Tensor
    known_padding: bool | None = field(default=None, kw_only=True)

    @property
    def has_padding(self) -> bool:
        """Whether some inputs are padded; waits for the device if this is not known."""
        return not bool(self.attention_mask.all()) if self.known_padding is None else self.known_padding


@dataclass(frozen=True)
class ModelOutput:
    """Hidden states from the embeddings up, and the logits of each task head.

    `logit_positions` (batch, k) are the token positions of per-token logits; None: all positions, in order.
    """

    hidden_states: tuple[Tensor, ...]
    logits: Mapping[str, Tensor]
    logit_positions: Tensor | None = None


Objective = Callable[[ModelOutput], "Tensor"]
"""A differentiable scalar of the output."""


@runtime_checkable
class Encoder(Protocol):
    """A model that maps texts to activations.

    `layers` and `heads` are 0 for encoders without attention (static vectors).
    """

    @property
    def name(self) -> str:
        """The name the model was loaded by."""
        ...

    @property
    def fingerprint(self) -> str:
        """A hash of everything the outputs depend on."""
        ...

    @property
    def layers(self) -> int:
        """Number of transformer layers."""
        ...

    @property
    def heads(self) -> int:
        """Number of attention heads in each layer."""
        ...

    @property
    def width(self) -> int:
        """Size of a hidden state."""
        ...

    @property
    def max_length(self) -> int:
        """Maximum number of input tokens, special tokens included."""
        ...

    @property
    def task_heads(self) -> frozenset[str]:
        """Task heads (`mlm`, `nsp`, `label`, `token`, `answer_start`, `choice` ...); empty for a bare encoder."""
        ...

    @property
    def causal(self) -> bool:
        """Whether a token attends only to itself and to earlier tokens."""
        ...

    @property
    def attention_windows(self) -> tuple[int | None, ...]:
        """Attention window of each layer in tokens to one side, None for a global layer; empty if all are global."""
        ...

    @property
    def mask_token_id(self) -> int | None:
        """Id of the mask token, if the vocabulary has one."""
        ...

    @property
    def device(self) -> str:
        """Device that inputs of `forward` must be on."""
        ...

    def tokenise(self, inputs: Sequence[TextInput]) -> list[TokenisedInput]:
        """Tokens of each input, special tokens included, without truncation."""
        ...

    def forward(
        self,
        batch: ModelInputs,
        *,
        on_layer: Callable[[LayerActivations], None] | None = None,
        hidden: bool = False,
        logits: bool = True,
        objective: Objective | None = None,
    ) -> ModelOutput:
        """Run one forward pass.

        `on_layer` receives each layer's activations as they are computed. With an `objective`, they include the
        gradient of that scalar with respect to the attention weights. Without `logits` the task head is not run: over
        a large vocabulary it takes a quarter of the time.
        """
        ...


class GatedEncoder(Encoder, Protocol):
    """An encoder whose heads can be scaled, made uniform or deprived of value vectors."""

    def with_gates(self, gates: Gates | None) -> Encoder:
        """The same weights, with these gates in every forward pass."""
        ...


@runtime_checkable
class Randomisable(Protocol):
    """An encoder with an untrained counterpart."""

    def randomised(self, seed: int = 0) -> GatedEncoder:
        """The same architecture with random weights."""
        ...


@runtime_checkable
class TaskEncoder(GatedEncoder, Protocol):
    """A transformer with weights to train, evaluate, prune or intervene on, and perhaps a task head.

    `isinstance(encoder, TaskEncoder)` tells transformers from static vectors.
    """

    @property
    def model(self) -> Any:
        """The transformers model, a torch module; `model.base_model` is the model without its task head."""
        ...

    @property
    def hf_tokenizer(self) -> Any:
        """The transformers tokenizer."""
        ...

    @property
    def tokeniser(self) -> Tokeniser:
        """The tokeniser behind `tokenise`."""
        ...

    @property
    def missing_weights(self) -> frozenset[str]:
        """Weights that the checkpoint lacks and no output depends on."""
        ...

    @property
    def gates(self) -> Gates | None:
        """Gates of every forward pass."""
        ...

    @property
    def labels(self) -> tuple[str, ...]:
        """Class names of the task head, by index."""
        ...

    @property
    def is_pruned(self) -> bool:
        """Whether heads have been removed: such a model has neither gates nor recordable attention."""
        ...

    def with_gates(self, gates: Gates | None) -> TaskEncoder:
        """The same weights, with these gates in every forward pass."""
        ...

    def with_model(self, model: Any) -> TaskEncoder:
        """The same encoder with another model of the same architecture, for example a trained copy."""
        ...

    def randomised(self, seed: int = 0, *, keep_embeddings: bool = False) -> TaskEncoder:
        """The same architecture with random weights; `keep_embeddings` keeps everything below the first layer."""
        ...

    def input_embeddings(self) -> Array:
        """(vocabulary, width) input embeddings."""
        ...


class Head(tuple[int, int]):
    """An attention head by layer and index, both from 0; printed from 1 as `layer-head`, as Clark et al. write 8-11."""

    def __new__(cls, layer: int, head: int) -> Head:
        """From 0-based indices."""
        return super().__new__(cls, (layer, head))

    def __getnewargs__(self) -> tuple[int, int]:
        """The arguments to pickle and copy it with."""
        return self[0], self[1]

    @classmethod
    def parse(cls, text: str) -> Head:
        """From the printed form, `8-11`."""
        layer, head = text.split("-")
        return cls(int(layer) - 1, int(head) - 1)

    def __str__(self) -> str:
        return f"{self[0] + 1}-{self[1] + 1}"


def describe_encoder(encoder: Encoder) -> dict[str, Any]:
    """Name, fingerprint, size and changes of an encoder, for the provenance of a result."""
    return {
        "name": encoder.name,
        "fingerprint": encoder.fingerprint,
        "layers": encoder.layers,
        "heads": encoder.heads,
        **describe_numbers(encoder),
        "changes": describe_changes(encoder),
    }


def describe_numbers(encoder: Encoder) -> dict[str, str]:
    """Type of number and device of an encoder, for the provenance of a result; static vectors are float32."""
    if not isinstance(encoder, TaskEncoder):
        return {"dtype": "float32", "device": encoder.device}
    return {"dtype": str(next(encoder.model.parameters()).dtype).removeprefix("torch."), "device": encoder.device}


def describe_changes(encoder: Encoder) -> dict[str, list[str]]:
    """Layers and heads of an encoder that are changed in every forward pass, by kind, and its hooks."""
    if not isinstance(encoder, TaskEncoder):
        return {}
    removed: Mapping[Any, Sequence[int]] = getattr(encoder.model.config, "removed_heads", None) or {}
    changes = {"removed heads": [str(Head(int(layer), head)) for layer in removed for head in removed[layer]]}
    scale, uniform = getattr(encoder.gates, "scale", None), getattr(encoder.gates, "uniform", None)
    if scale is not None:
        changes["heads set to zero"] = _head_names(scale == 0)
        changes["scaled heads"] = _head_names((scale != 0) & (scale != 1))
    if uniform is not None:
        changes["heads with uniform attention"] = _head_names(uniform)
    variant, hooks = getattr(encoder, "variant", None), getattr(encoder, "activation_hooks", None)
    if variant is not None:
        changes |= variant.changes
    if hooks is not None:
        changes["hooks"] = [name for name in ("attention", "head_outputs", "hidden") if getattr(hooks, name)]
    return {change: heads for change, heads in changes.items() if heads}


def _head_names(mask: Tensor) -> list[str]:
    """The heads for which a (layer, head) mask is true, in any row if it has a batch axis."""
    flags = mask.flatten(2).any(-1) if mask.ndim > 2 else mask
    return [str(Head(layer, head)) for layer, head in flags.nonzero().tolist()]


def parse_head_mask(names: str, encoder: Encoder, option: str, usage: str) -> BoolArray:
    """(layer, head) booleans; refuses heads the encoder does not have, with `usage` as the remedy."""
    mask = np.zeros((encoder.layers, encoder.heads), np.bool_)
    for name in names.split(","):
        try:
            head = Head.parse(name)
            is_valid = min(head) >= 0 and head[0] < encoder.layers and head[1] < encoder.heads
        except ValueError:
            head, is_valid = Head(0, 0), False
        if not is_valid:
            raise Refusal(
                f"{option} names the head {name.strip()!r}",
                f"heads of {encoder.name} from 1-1 to {encoder.layers}-{encoder.heads}",
                usage,
            )
        mask[head] = True
    return mask
