"""Encoders in Hugging Face format: run a transformers model and read its attention.

Attention is read where it is computed, through transformers' attention interface (or a patch, see `layer_hooks`),
never through `output_attentions`; it works with any implementation a checkpoint asks for.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from bertology.arrays import Array
from bertology.corpus.corpus import TextInput
from bertology.encoder.attention_hook import (
    AttentionHook,
    Gates,
    LayerActivations,
    active_hook,
    hooked_attention,
    use_attention_implementation,
    use_hook,
)
from bertology.encoder.encoder import ModelInputs, ModelOutput, Objective
from bertology.encoder.families import TaskHeadFields, find_family, is_embedding
from bertology.encoder.layer_hooks import patch_attention, register_layer_hooks, verify_capture
from bertology.encoder.tokens import TokenisedInput, Tokeniser
from bertology.errors import Refusal
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor, nn

IMPLEMENTATION = "bertology"
NO_LENGTH_LIMIT = 1_000_000
SLIDING_ATTENTION = "sliding_attention"

TASK_HEADS: dict[str, TaskHeadFields] = {
    "ForMaskedLM": (("mlm", "logits"),),
    "LMHeadModel": (("lm", "logits"),),
    "ForCausalLM": (("lm", "logits"),),
    "ForNextSentencePrediction": (("nsp", "logits"),),
    "ForSequenceClassification": (("label", "logits"),),
    "ForTokenClassification": (("token", "logits"),),
    "ForMultipleChoice": (("choice", "logits"),),
    "ForQuestionAnswering": (("answer_start", "start_logits"), ("answer_end", "end_logits")),
}
"""Task heads of transformers' model classes, by the end of the class name."""


def task_head_fields(model_class: Any) -> TaskHeadFields:
    """The task heads of a transformers model class and the output fields of their logits; none for a bare model."""
    if model_class.__name__.endswith("ForPreTraining"):
        family = find_family(model_class.config_class.model_type)
        return family.pretraining_heads if family else ()
    return next((heads for suffix, heads in TASK_HEADS.items() if model_class.__name__.endswith(suffix)), ())


def _attention_function(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    position_bias: Tensor | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attention as transformers' interface calls it: hooked if a hook is active."""
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    hook = active_hook()
    if hook is None:
        terms = [term for term in (attention_mask, position_bias) if term is not None]
        head_outputs = torch.nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=cast("Tensor", sum(terms)) if terms else None, dropout_p=dropout, scale=scale
        )
    else:
        head_outputs = hooked_attention(
            hook, query, key, value, mask=attention_mask, bias=position_bias, scaling=scale, dropout=dropout
        )
    return head_outputs.transpose(1, 2).contiguous(), None


AttentionInterface.register(IMPLEMENTATION, _attention_function)
AttentionMaskInterface.register(IMPLEMENTATION, eager_mask)


@dataclass(frozen=True, eq=False)
class HuggingFaceEncoder:
    """A transformers model and its fast tokeniser as a `TaskEncoder`; `gates` apply to every forward pass.

    `missing_weights` are weights the checkpoint lacked and no output depends on. Between forward passes the model's
    configuration is unchanged.
    """

    name: str
    model: Any = field(repr=False)
    hf_tokenizer: Any = field(repr=False)
    tokeniser: Tokeniser = field(repr=False)
    missing_weights: frozenset[str] = field(default=frozenset(), repr=False)
    gates: Gates | None = None
    causal: bool = False

    @property
    def layers(self) -> int:
        """Number of transformer layers."""
        return int(self.model.config.num_hidden_layers)

    @property
    def heads(self) -> int:
        """Number of attention heads in each layer."""
        return int(self.model.config.num_attention_heads)

    @property
    def width(self) -> int:
        """Size of a hidden state."""
        return int(self.model.config.hidden_size)

    @property
    def max_length(self) -> int:
        """Maximum number of input tokens, special tokens included."""
        config = self.model.config
        family = find_family(config.model_type)
        positions = int(getattr(config, "max_position_embeddings", NO_LENGTH_LIMIT))
        offset = family.position_offset(config) if family else 0
        return min(positions - offset, int(min(self.hf_tokenizer.model_max_length, NO_LENGTH_LIMIT)))

    @property
    def task_heads(self) -> frozenset[str]:
        """Task heads of the model."""
        return frozenset(name for name, _ in self._task_head_fields)

    @property
    def labels(self) -> tuple[str, ...]:
        """Class names of the task head, by index."""
        names: dict[int, str] = self.model.config.id2label
        return tuple(str(names[index]) for index in sorted(names))

    @property
    def is_pruned(self) -> bool:
        """Whether heads have been removed."""
        return False

    @property
    def attention_windows(self) -> tuple[int | None, ...]:
        """Attention window of each layer in tokens to one side, None for a global layer; empty if all are global."""
        size: int | None = getattr(self.model.config, "sliding_window", None)
        kinds: list[str] = getattr(self.model.config, "layer_types", None) or [SLIDING_ATTENTION] * self.layers
        if size is None or SLIDING_ATTENTION not in kinds:
            return ()
        # transformers counts the token itself in a causal window, not in one to both sides.
        return tuple(size - self.causal if kind == SLIDING_ATTENTION else None for kind in kinds)

    @property
    def mask_token_id(self) -> int | None:
        """Id of the mask token, if the vocabulary has one."""
        return self.hf_tokenizer.mask_token_id

    @property
    def device(self) -> str:
        """Device of the weights."""
        return str(next(self.model.parameters()).device)

    @property
    def fingerprint(self) -> str:
        """A hash of architecture, weights, tokeniser and gates."""
        volatile = {"_name_or_path", "transformers_version", "dtype", "architectures"}
        config = {k: v for k, v in self.model.config.to_dict().items() if k not in volatile}
        digest = hashlib.sha256()
        digest.update(json.dumps([type(self.model).__name__, config], sort_keys=True, default=str).encode())
        digest.update(self.tokeniser.fingerprint.encode())
        digest.update(weights_fingerprint(self.model, exclude=self.missing_weights).encode())
        for gate_field in fields(Gates):
            gate: Tensor | None = getattr(self.gates, gate_field.name, None)
            if gate is not None:
                digest.update(f"{gate_field.name}{gate.dtype}".encode())
                digest.update(tensor_bytes(gate))
        return digest.hexdigest()[:32]

    def with_gates(self, gates: Gates | None) -> HuggingFaceEncoder:
        """The same weights, with these gates in every forward pass."""
        for gate, n_axes in ((gates.scale, 2), (gates.uniform, 2), (gates.offset, 3)) if gates else ():
            if gate is not None and (
                gate.shape[:2] != (self.layers, self.heads) or gate.ndim not in {n_axes, n_axes + 1}
            ):
                raise Refusal(
                    f"Gates of shape {tuple(gate.shape)} do not fit {self.name}",
                    f"one value for each of {self.layers} layers and {self.heads} heads",
                    "Use gates of shape (layers, heads) or (layers, heads, batch)",
                )
        zeroed = gates.zeroed_values if gates else None
        if zeroed is not None and (
            zeroed.ndim != 4 or zeroed.shape[0] not in {1, self.layers} or zeroed.shape[1] not in {1, self.heads}
        ):
            raise Refusal(
                f"Zeroed values of shape {tuple(zeroed.shape)} do not fit {self.name}",
                f"(layer, head, batch, token), with {self.layers} layers or 1 for all, {self.heads} heads or 1 for all",
                "Build them for the batch of the forward pass",
            )
        return replace(self, gates=gates)

    def with_model(self, model: Any) -> HuggingFaceEncoder:
        """The same encoder with another model of the same architecture."""
        return replace(self, model=model)

    def randomised(self, seed: int = 0, *, keep_embeddings: bool = False) -> HuggingFaceEncoder:
        """The same architecture with random weights.

        `keep_embeddings` keeps everything below the first layer, as Clark et al. (2019) do in their random control.
        """
        model = from_config(type(self.model), copy.deepcopy(self.model.config), seed)
        model = model.to(next(self.model.parameters()).dtype)
        if keep_embeddings:
            model_type = self.model.config.model_type
            trained = self.model.state_dict()
            embeddings = {name: weight for name, weight in trained.items() if is_embedding(model_type, name)}
            model.load_state_dict(embeddings, strict=False)
        name = f"random:{self.name}" + (f"@{seed}" if seed else "")
        return wrap(model.to(self.device), self.hf_tokenizer, name)

    def input_embeddings(self) -> Array:
        """(vocabulary, width) input embeddings."""
        return self.model.get_input_embeddings().weight.detach().float().cpu().numpy()

    def tokenise(self, inputs: Sequence[TextInput]) -> list[TokenisedInput]:
        """Tokens of each input, special tokens included, without truncation."""
        return self.tokeniser.tokenise(inputs)

    def forward(
        self,
        batch: ModelInputs,
        *,
        on_layer: Callable[[LayerActivations], None] | None = None,
        hidden: bool = False,
        objective: Objective | None = None,
    ) -> ModelOutput:
        """Run one forward pass; see `Encoder.forward`."""
        if on_layer is None and self.gates is None:
            return self._forward_with_hook(batch, hidden)
        hook = AttentionHook(on_layer, self.gates, retain_graph=objective is not None)
        with use_hook(hook), torch.set_grad_enabled(objective is not None or torch.is_grad_enabled()):
            output = self._forward_with_hook(batch, hidden)
        if objective is not None:
            attention = [activations.attention for activations in hook.pending]
            # Attention that the objective does not depend on has gradient 0, not None.
            gradients = torch.autograd.grad(objective(output), attention, materialize_grads=True)
            for activations, gradient in zip(hook.pending, gradients, strict=True):
                activations.gradient = gradient
                activations.attention = activations.attention.detach()
                if on_layer is not None:
                    on_layer(activations)
            hook.pending.clear()
        return output

    def _forward_with_hook(self, batch: ModelInputs, hidden: bool) -> ModelOutput:
        with use_attention_implementation(IMPLEMENTATION, self.model.config):
            return self.forward_without_hook(batch, hidden=hidden)

    def forward_without_hook(self, batch: ModelInputs, *, hidden: bool = False) -> ModelOutput:
        """Run one forward pass with the model's own attention implementation, without hook and gates."""
        arguments: dict[str, Any] = {"input_ids": self._padded_input_ids(batch), "attention_mask": batch.attention_mask}
        if self.device != "cpu" and bool(batch.attention_mask.all()):
            del arguments["attention_mask"]  # attention without a mask is faster on a GPU
        if self._takes_token_types:
            arguments["token_type_ids"] = batch.token_type_ids
        if "choice" in self.task_heads:
            arguments = {name: tensor.unsqueeze(1) for name, tensor in arguments.items()}
        if self.causal:
            arguments["use_cache"] = False
        returned = self.model(**arguments, output_hidden_states=hidden, return_dict=True)
        logits = {name: getattr(returned, logits_field) for name, logits_field in self._task_head_fields}
        return ModelOutput(tuple(returned.hidden_states) if hidden else (), logits)

    def _padded_input_ids(self, batch: ModelInputs) -> Tensor:
        """Input ids with the model's padding id: some models find the last token, or count positions, by it."""
        padding = self.model.config.pad_token_id
        if padding is not None:
            return batch.input_ids.masked_fill(batch.attention_mask == 0, padding)
        if self.causal and "label" in self.task_heads and len(batch.input_ids) > 1:
            raise Refusal(
                f"{self.name} classifies the last token of a text but has no padding token to find it by",
                "a `pad_token_id` in config.json",
                "Set it to the id the model was fine-tuned with",
            )
        return batch.input_ids

    @cached_property
    def _takes_token_types(self) -> bool:
        parameters = inspect.signature(self.model.forward).parameters
        n_types = getattr(self.model.config, "type_vocab_size", 0) or 0
        return "token_type_ids" in parameters and n_types > 1 and not self.causal

    @cached_property
    def _task_head_fields(self) -> TaskHeadFields:
        return task_head_fields(type(self.model))


def wrap(model: Any, tokenizer: Any, name: str, *, missing_weights: frozenset[str] = frozenset()) -> HuggingFaceEncoder:
    """A transformers model as an encoder; the model is set to evaluation mode.

    Refuses a model if, in a trial pass, the hook misses attention or changes the output.
    """
    model.eval()
    patch_attention(model)
    register_layer_hooks(model)
    family = find_family(model.config.model_type)
    causal = (family is not None and family.causal) or bool(getattr(model.config, "is_decoder", False))
    encoder = HuggingFaceEncoder(
        name, model, tokenizer, _build_tokeniser(tokenizer, name), missing_weights, causal=causal
    )
    vocabulary_size = int(model.get_input_embeddings().weight.shape[0])
    is_causal = verify_capture(
        encoder, lambda batch: encoder.forward_without_hook(batch, hidden=True), vocabulary_size=vocabulary_size
    )
    return replace(encoder, causal=is_causal)


def from_config(model_class: Any, config: Any, seed: int) -> Any:
    """A model of this class with seeded random weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return model_class(config)


def _build_tokeniser(tokenizer: Any, name: str) -> Tokeniser:
    if not tokenizer.is_fast:
        raise Refusal(
            f"{name} has only a slow tokeniser ({type(tokenizer).__name__})",
            "a fast one (tokenizer.json): words are aligned by its character offsets",
            "Convert it with transformers' AutoTokenizer where its dependencies are installed, and save it again",
        )
    return Tokeniser(
        tokenizer.backend_tokenizer.to_str(),
        cls_ids=frozenset({tokenizer.cls_token_id, tokenizer.bos_token_id} - {None}),
        sep_ids=frozenset({tokenizer.sep_token_id, tokenizer.eos_token_id} - {None}),
        unknown_id=tokenizer.unk_token_id,
        split_special=tokenizer.split_special_tokens,
    )


WeightVersions = tuple[tuple[str, int, int], ...]

_cache: WeakKeyDictionary[nn.Module, tuple[WeightVersions, frozenset[str], str]] = WeakKeyDictionary()


def weights_fingerprint(model: nn.Module, *, exclude: frozenset[str] = frozenset()) -> str:
    """A hash of every weight's name, shape, type and bytes, without the weights named in `exclude`.

    Cached by model and shared by all encoders that gate it differently. torch counts in-place changes of a tensor, so
    that a model that was trained further gets a new hash.
    """
    state: dict[str, Any] = model.state_dict()
    versions = tuple((n, t.data_ptr(), -1 if t.is_inference() else t._version) for n, t in state.items())
    cached = _cache.get(model)
    if cached is not None and cached[:2] == (versions, exclude):
        return cached[2]
    digest = hashlib.sha256()
    for name, tensor in sorted(state.items()):
        if name not in exclude:
            digest.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
            digest.update(tensor_bytes(tensor))
    fingerprint = digest.hexdigest()[:32]
    _cache[model] = versions, exclude, fingerprint
    return fingerprint


def tensor_bytes(tensor: Tensor) -> memoryview:
    """The bytes of a tensor of any type on any device."""
    return tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data
