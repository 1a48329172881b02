"""Encoders in Hugging Face format: run a transformers model and read its attention.

Attention is read where it is computed, through transformers' attention interface (or a patch, see `layer_hooks`),
never through `output_attentions`; it works with any implementation a checkpoint asks for.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

import numpy as np
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from bertology.arrays import Array
from bertology.corpus.example import TextInput
from bertology.corpus.sentence import sentence_from_text
from bertology.encoder.attention_hook import (
    UNCHANGED,
    ActivationHook,
    ActivationHooks,
    AttentionHook,
    Gates,
    LayerActivations,
    active_hook,
    current_hook,
    head_changes,
    hooked_attention,
    use_attention_implementation,
    use_hook,
)
from bertology.encoder.encoder import Head, ModelInputs, ModelOutput, Objective
from bertology.encoder.families import TaskHeadFields, find_family, is_embedding, is_layer, model_families
from bertology.encoder.layer_hooks import patch_attention, register_layer_hooks, verify_capture
from bertology.encoder.tokens import TokenisedInput, Tokeniser
from bertology.encoder.variants import (
    Variant,
    derive_model,
    parse_heads,
    parse_layers,
    set_head_changes,
    variant_of,
    with_head_changes,
    with_layer_order,
)
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.public_functions import public_function

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
    if key.shape[1] != query.shape[1]:  # grouped-query attention: several heads share keys and values
        repeats = query.shape[1] // key.shape[1]
        key, value = (shared.repeat_interleave(repeats, 1) for shared in (key, value))
    changes = head_changes(module)
    if active_hook() is None and changes == UNCHANGED:
        terms = [term for term in (attention_mask, position_bias) if term is not None]
        head_outputs = torch.nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=cast("Tensor", sum(terms)) if terms else None, dropout_p=dropout, scale=scale
        )
    else:
        head_outputs = hooked_attention(
            current_hook(),
            query,
            key,
            value,
            mask=attention_mask,
            bias=position_bias,
            scaling=scale,
            dropout=dropout,
            changes=changes,
        )
    return head_outputs.transpose(1, 2).contiguous(), None


AttentionInterface.register(IMPLEMENTATION, _attention_function)


def _attention_mask(*, attention_mask: Tensor | None, allow_is_bidirectional_skip: bool = False, **options: Any) -> Any:
    """The additive mask of a layer, or None if every token is visible; a mask that is given hides padding.

    transformers would look whether it does, and so wait for the device.
    """
    skips = allow_is_bidirectional_skip and attention_mask is None
    return eager_mask(attention_mask=attention_mask, allow_is_bidirectional_skip=skips, **options)


AttentionMaskInterface.register(IMPLEMENTATION, _attention_mask)


@dataclass(frozen=True, eq=False)
class HuggingFaceEncoder:
    """A transformers model and its fast tokeniser as a `TaskEncoder`; `gates` apply to every forward pass.

    `missing_weights` are weights the checkpoint lacked and no output depends on. Between forward passes the model's
    configuration is unchanged. `variant` says how the encoder was derived from another (`without` and its relatives),
    `activation_hooks` read or replace activations in every forward pass (`hooked`).
    """

    name: str
    model: Any = field(repr=False)
    hf_tokenizer: Any = field(repr=False)
    tokeniser: Tokeniser = field(repr=False)
    missing_weights: frozenset[str] = field(default=frozenset(), repr=False)
    gates: Gates | None = None
    causal: bool = False
    variant: Variant | None = field(default=None, repr=False)
    activation_hooks: ActivationHooks | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        size = f"{self.layers} layers x {self.heads} heads, width {self.width}"
        return f"{type(self).__name__}({self.name!r}, {size}{', causal' if self.causal else ''})"

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
        if self.variant is not None:
            digest.update(repr((self.variant.layers, self.variant.zeroed, self.variant.uniform)).encode())
        if self.activation_hooks is not None:
            digest.update(self.activation_hooks.key.encode())
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

    def without(self, *heads: str | tuple[int, int]) -> HuggingFaceEncoder:
        """The encoder with the output of these heads set to zero, as in Michel et al. (2019).

        Heads are named as results print them: `without("3-8", "4-1")`.
        """
        variant = with_head_changes(variant_of(self), zeroed=parse_heads(self, heads))
        return self._derive(variant, range(self.layers))

    def keeping(self, *heads: str | tuple[int, int]) -> HuggingFaceEncoder:
        """The encoder with the output of all other heads set to zero."""
        kept = set(parse_heads(self, heads))
        every = [Head(layer, head) for layer in range(self.layers) for head in range(self.heads)]
        variant = with_head_changes(variant_of(self), zeroed=[head for head in every if head not in kept])
        return self._derive(variant, range(self.layers))

    def uniform(self, *heads: str | tuple[int, int]) -> HuggingFaceEncoder:
        """The encoder with uniform attention to all visible tokens in these heads, as in Kovaleva et al. (2019)."""
        variant = with_head_changes(variant_of(self), uniform=parse_heads(self, heads))
        return self._derive(variant, range(self.layers))

    def with_layers(self, *layers: int) -> HuggingFaceEncoder:
        """The encoder with these layers only, in this order; layers are numbered from 1.

        A layer may be left out, moved or repeated. Layers and heads of the result are numbered anew, as it prints them:
        `with_layers(1, 2, 4).without("3-1")` is `without("4-1").with_layers(1, 2, 4)`.
        """
        order = parse_layers(self, layers)
        return self._derive(with_layer_order(variant_of(self), order), order)

    def _derive(self, variant: Variant, order: Sequence[int]) -> HuggingFaceEncoder:
        if self.is_pruned or self.gates is not None or self.activation_hooks is not None:
            state = "pruned" if self.is_pruned else "gated" if self.gates is not None else "hooked"
            raise Refusal(
                f"{self.name} is {state}, and no other encoder can be derived from it",
                "a model with all its heads, without gates and hooks",
                "Derive from the original model",
            )
        model = derive_model(self.model, order, variant.heads)
        return replace(self, name=variant.name(self.heads), model=model, variant=variant)

    @public_function
    @contextmanager
    def hooked(
        self,
        *,
        attention: ActivationHook | None = None,
        head_outputs: ActivationHook | None = None,
        hidden: ActivationHook | None = None,
    ) -> Generator[HuggingFaceEncoder]:
        """An encoder that calls these functions in every forward pass within the block.

        Each receives the activations of one layer and its number, and returns what replaces them, or None to leave
        them: `attention` (batch, head, from, to), `head_outputs` (batch, head, token, size) and `hidden` (batch, token,
        width), the output of a layer before any final norm; as layer 0 the input of the first layer. This encoder
        itself runs as before. No recording or result of a hooked encoder is reused.
        """
        if attention is head_outputs is hidden is None:
            raise Refusal(
                "No hook was given",
                "a function of activations and layer number for attention, head_outputs or hidden",
                "Write for example hooked(hidden=lambda states, layer: None)",
            )
        if hidden is not None and not any(map(is_layer, self.model.modules())):
            raise Refusal(
                f"The layers of {self.name} ({self.model.config.model_type}) are not known",
                f"a model of a supported family: {', '.join(family.name for family in model_families())}",
                "Hook its attention or head outputs, or register a hook on its modules with torch",
            )
        activation_hooks = ActivationHooks(attention, head_outputs, hidden)
        try:
            yield replace(self, name=f"{self.name} (hooked)", activation_hooks=activation_hooks)
        finally:
            activation_hooks.is_open = False

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
        randomised = wrap(model.to(self.device), self.hf_tokenizer, name)
        if self.variant is None:
            return randomised
        set_head_changes(randomised.model, self.variant.heads)
        return replace(randomised, variant=self.variant)

    def input_embeddings(self) -> Array:
        """(vocabulary, width) input embeddings."""
        return self.model.get_input_embeddings().weight.detach().float().cpu().numpy()

    def tokenise(self, inputs: Sequence[TextInput]) -> list[TokenisedInput]:
        """Tokens of each input, special tokens included, without truncation; refused if the model has no such token."""
        tokenised = self.tokeniser.tokenise(inputs)
        n_embeddings: int = self.model.get_input_embeddings().weight.shape[0]
        highest = int(np.concatenate([tokens.ids for tokens in tokenised]).max(initial=-1)) if tokenised else -1
        if highest >= n_embeddings:
            raise Refusal(
                f"The tokeniser of {self.name} gives the token {highest}, and the model has {n_embeddings} embeddings",
                "the tokeniser that the model was trained with",
                "Copy tokeniser and weights of one model into the directory again",
            )
        return tokenised

    def batch(self, texts: str | Sequence[str | tuple[str, str]]) -> ModelInputs:
        """Texts, or pairs of texts, as the padded input of `forward`."""
        texts = [texts] if isinstance(texts, str) else texts
        segments = [(text,) if isinstance(text, str) else tuple(text) for text in texts]
        tokens = self.tokenise([TextInput(tuple(map(sentence_from_text, pair))) for pair in segments])
        padded = torch.zeros((3, len(tokens), max(len(row) for row in tokens)), dtype=torch.long)
        for index, row in enumerate(tokens):
            for target, values in zip(padded, (row.ids, row.type_ids, row.ids * 0 + 1), strict=True):
                target[index, : len(row)] = torch.as_tensor(values)
        return ModelInputs(*padded.to(self.device))

    def forward(
        self,
        batch: ModelInputs,
        *,
        on_layer: Callable[[LayerActivations], None] | None = None,
        hidden: bool = False,
        logits: bool = True,
        objective: Objective | None = None,
    ) -> ModelOutput:
        """Run one forward pass; see `Encoder.forward`."""
        if on_layer is None and self.gates is None and self.activation_hooks is None:
            return self._forward_with_hook(batch, hidden, logits)
        if self.activation_hooks is not None and not self.activation_hooks.is_open:
            raise Refusal(
                f"{self.name} was used after the block of its hooks",
                "forward passes inside `with encoder.hooked(...) as hooked:`",
                "Move the pass into the block, or use the original encoder",
            )
        global_layers = self._global_layers(batch.input_ids.shape[1])
        hook = AttentionHook(on_layer, self.gates, objective is not None, self.activation_hooks, global_layers)
        with use_hook(hook), torch.set_grad_enabled(objective is not None or torch.is_grad_enabled()):
            output = self._forward_with_hook(batch, hidden, logits or objective is not None)
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

    def _forward_with_hook(self, batch: ModelInputs, hidden: bool, logits: bool) -> ModelOutput:
        with use_attention_implementation(IMPLEMENTATION, self.model.config):
            return self.forward_without_hook(batch, hidden=hidden, logits=logits)

    def forward_without_hook(self, batch: ModelInputs, *, hidden: bool = False, logits: bool = True) -> ModelOutput:
        """Run one forward pass with the model's own attention implementation, without hook and gates."""
        arguments: dict[str, Any] = {"input_ids": self._padded_input_ids(batch)}
        if batch.has_padding:  # attention without a mask is faster
            arguments["attention_mask"] = batch.attention_mask
        if self._takes_token_types:
            arguments["token_type_ids"] = batch.token_type_ids
        if logits and "choice" in self.task_heads:
            arguments = {name: tensor.unsqueeze(1) for name, tensor in arguments.items()}
        if self.causal:
            arguments["use_cache"] = False
        model = self.model if logits else self.model.base_model
        returned = model(**arguments, output_hidden_states=hidden, return_dict=True)
        fields = self._task_head_fields if logits else ()
        return ModelOutput(
            tuple(returned.hidden_states) if hidden else (), {name: getattr(returned, field) for name, field in fields}
        )

    def _global_layers(self, n_tokens: int) -> Collection[int]:
        """The layers known to let every token see every token of its input, in inputs of up to `n_tokens`."""
        if self.causal or find_family(self.model.config.model_type) is None:
            return ()
        windows = self.attention_windows or (None,) * self.layers
        return [layer for layer, window in enumerate(windows) if window is None or n_tokens <= window + 1]

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
