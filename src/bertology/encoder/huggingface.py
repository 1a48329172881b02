"""Encoders in Hugging Face form: how a model of transformers is run and seen; `transformer_files` opens them.

Attention is read where it is computed, through transformers' attention interface (or `families.teach` where a family
does not use it), never through `output_attentions`; it works whatever implementation the checkpoint asks for.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from bertology.corpus.corpus import Input
from bertology.encoder import blocks, families, fingerprint, trial
from bertology.encoder.attend import Gates, LayerActivations, Tap, active_tap, attend, tapped
from bertology.encoder.encoder import Batch, Objective, Output
from bertology.encoder.output_heads import Fields, fields_of
from bertology.encoder.pieces import Pieces
from bertology.encoder.switch import attending_by
from bertology.encoder.tokeniser import Tokeniser
from bertology.encoder.variant import EMBEDDING_PATHS
from bertology.errors import Refusal

IMPLEMENTATION = "bertology"
UNBOUNDED = 1_000_000
WINDOWED = "sliding_attention"


def _seen_attention(
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
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    tap = active_tap()
    if tap is None:
        added = [bias for bias in (attention_mask, position_bias) if bias is not None]
        context = nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=cast("Tensor", sum(added)) if added else None, dropout_p=dropout, scale=scale
        )
    else:
        context = attend(
            tap, query, key, value, mask=attention_mask, bias=position_bias, scaling=scale, dropout=dropout
        )
    return context.transpose(1, 2).contiguous(), None


AttentionInterface.register(IMPLEMENTATION, _seen_attention)
AttentionMaskInterface.register(IMPLEMENTATION, eager_mask)


@dataclass(frozen=True, eq=False)
class HuggingFaceEncoder:
    """A transformers model and its fast tokeniser as an `Encoder`; `gates` act on every pass.

    `absent` names weights that the checkpoint lacked and no output depends on; `causal` says whether a piece sees only
    what is before it. Outside `run` the model is as it was.
    """

    name: str
    model: Any = field(repr=False)
    tokenizer: Any = field(repr=False)
    tokeniser: Tokeniser = field(repr=False)
    absent: frozenset[str] = field(default=frozenset(), repr=False)
    gates: Gates | None = None
    causal: bool = False

    @property
    def layers(self) -> int:
        """How many layers attend."""
        return int(self.model.config.num_hidden_layers)

    @property
    def heads(self) -> int:
        """Heads in each layer."""
        return int(self.model.config.num_attention_heads)

    @property
    def width(self) -> int:
        """Size of a hidden state."""
        return int(self.model.config.hidden_size)

    @property
    def max_pieces(self) -> int:
        """The longest input, special tokens included."""
        positions = int(getattr(self.model.config, "max_position_embeddings", UNBOUNDED))
        offset = (self.model.config.pad_token_id or 0) + 1 if self._positions_start_after_padding else 0
        return min(positions - offset, int(min(self.tokenizer.model_max_length, UNBOUNDED)))

    @property
    def _positions_start_after_padding(self) -> bool:
        return self.model.config.model_type in {"roberta", "xlm-roberta", "camembert", "mpnet"}

    @property
    def outputs(self) -> frozenset[str]:
        """The heads on top of the encoder."""
        return frozenset(name for name, _ in self._output_fields)

    @property
    def reach(self) -> tuple[int | None, ...]:
        """By layer, how many pieces away a piece sees, None as far as there are any; empty where all layers do."""
        size: int | None = getattr(self.model.config, "sliding_window", None)
        kinds: list[str] = getattr(self.model.config, "layer_types", None) or [WINDOWED] * self.layers
        if size is None or WINDOWED not in kinds:
            return ()
        # Of a window that looks back transformers counts the piece itself, of one to both sides it does not.
        return tuple(size - self.causal if kind == WINDOWED else None for kind in kinds)

    @property
    def mask_id(self) -> int | None:
        """The id of the mask token, if the tokeniser has one."""
        return self.tokenizer.mask_token_id

    @property
    def device(self) -> str:
        """Where the weights are."""
        return str(next(self.model.parameters()).device)

    @property
    def fingerprint(self) -> str:
        """A hash of architecture, weights, tokeniser and gates: equal function, equal fingerprint."""
        volatile = {"_name_or_path", "transformers_version", "dtype", "architectures"}
        config = {k: v for k, v in self.model.config.to_dict().items() if k not in volatile}
        digest = hashlib.sha256()
        digest.update(json.dumps([type(self.model).__name__, config], sort_keys=True, default=str).encode())
        digest.update(self.tokeniser.fingerprint.encode())
        digest.update(fingerprint.of_weights(self.model, without=self.absent).encode())
        gates = self.gates or Gates()
        for kind in ("scale", "uniform", "silent", "shift"):
            gate: Tensor | None = getattr(gates, kind)
            if gate is not None:
                digest.update(f"{kind}{gate.dtype}".encode())
                digest.update(fingerprint.content(gate))
        return digest.hexdigest()[:32]

    def gated(self, gates: Gates | None) -> HuggingFaceEncoder:
        """The same weights with these gates on every pass."""
        for gate, axes in ((gates.scale, 2), (gates.uniform, 2), (gates.shift, 3)) if gates else ():
            if gate is not None and (gate.shape[:2] != (self.layers, self.heads) or gate.ndim not in {axes, axes + 1}):
                raise Refusal(
                    f"Gates of shape {tuple(gate.shape)} do not fit {self.name}",
                    f"one value for each of {self.layers} layers and {self.heads} heads",
                    "Make the gates with shape (layers, heads), or (layers, heads, batch), of this encoder",
                )
        silent = gates.silent if gates else None
        if silent is not None and (silent.ndim != 4 or not self._for_its_heads(silent)):
            raise Refusal(
                f"Silent pieces of shape {tuple(silent.shape)} do not fit {self.name}",
                f"(layer, head, batch, piece), with {self.layers} layers or 1 for all, {self.heads} heads or 1 for all",
                "Make them for the batch that is going to be run",
            )
        return replace(self, gates=gates)

    def _for_its_heads(self, silent: Tensor) -> bool:
        return silent.shape[0] in {1, self.layers} and silent.shape[1] in {1, self.heads}

    def randomised(self, seed: int = 0, *, keep_embeddings: bool = False) -> HuggingFaceEncoder:
        """The same architecture with fresh weights.

        `keep_embeddings` keeps all that makes the hidden states of layer 0 (Clark et al. 2019 keep them in their
        random control), so that only the layers are fresh.
        """
        fresh = from_config(type(self.model), copy.deepcopy(self.model.config), seed)
        fresh = fresh.to(next(self.model.parameters()).dtype)
        if keep_embeddings:
            trained = self.model.state_dict()
            kept = {k: v for k, v in trained.items() if any(path in f".{k}" for path in EMBEDDING_PATHS)}
            fresh.load_state_dict(kept, strict=False)
        label = f"random:{self.name}" + (f"@{seed}" if seed else "")
        return wrap(fresh.to(self.device), self.tokenizer, label)

    def input_vectors(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        """The input embedding of every vocabulary entry: (vocabulary, size)."""
        return self.model.get_input_embeddings().weight.detach().float().cpu().numpy()

    def tokenise(self, inputs: Sequence[Input]) -> list[Pieces]:
        """The pieces of each input with their words, by the offsets of the fast tokeniser."""
        return self.tokeniser.tokenise(inputs)

    def run(
        self,
        batch: Batch,
        *,
        on_layer: Callable[[LayerActivations], None] | None = None,
        hidden: bool = False,
        objective: Objective | None = None,
    ) -> Output:
        """One forward pass; see `Encoder.run`."""
        if on_layer is None and self.gates is None:
            return self._forward(batch, hidden)
        tap = Tap(on_layer, self.gates, keep_graph=objective is not None)
        with tapped(tap), torch.set_grad_enabled(objective is not None or torch.is_grad_enabled()):
            output = self._forward(batch, hidden)
        if objective is not None:
            maps = [kept.attention for kept in tap.kept]
            # A map that the scalar does not depend on has the gradient 0, not none.
            gradients = torch.autograd.grad(objective(output), maps, materialize_grads=True)
            for kept, gradient in zip(tap.kept, gradients, strict=True):
                kept.gradient = gradient
                kept.attention = kept.attention.detach()
                if on_layer is not None:
                    on_layer(kept)
            tap.kept.clear()
        return output

    def _forward(self, batch: Batch, hidden: bool) -> Output:
        with attending_by(IMPLEMENTATION, self.model.config):
            return self.run_alone(batch, hidden=hidden)

    def run_alone(self, batch: Batch, *, hidden: bool = False) -> Output:
        """One forward pass in the model's own way, unseen and without gates."""
        arguments: dict[str, Any] = {"input_ids": self._padded(batch), "attention_mask": batch.mask}
        if self.device != "cpu" and bool(batch.mask.all()):
            del arguments["attention_mask"]  # an accelerator attends faster without
        if self._takes_types:
            arguments["token_type_ids"] = batch.types
        if "choice" in self.outputs:
            arguments = {name: tensor.unsqueeze(1) for name, tensor in arguments.items()}
        if self.causal:
            arguments["use_cache"] = False
        returned = self.model(**arguments, output_hidden_states=hidden, return_dict=True)
        logits = {name: getattr(returned, theirs) for name, theirs in self._output_fields}
        states = tuple(returned.hidden_states) if hidden else ()
        return Output(states, logits)

    def _padded(self, batch: Batch) -> Tensor:
        """The ids with the model's own padding: some models find the last piece, or count positions, by it."""
        padding = self.model.config.pad_token_id
        if padding is not None:
            return batch.ids.masked_fill(batch.mask == 0, padding)
        if self.causal and "label" in self.outputs and len(batch.ids) > 1:
            raise Refusal(
                f"{self.name} classifies the last piece of a text and names no padding to find it by",
                "a `pad_token_id` in config.json",
                "Set it to the id that the model was fine-tuned with",
            )
        return batch.ids

    @cached_property
    def _takes_types(self) -> bool:
        known = inspect.signature(self.model.forward).parameters
        kinds = getattr(self.model.config, "type_vocab_size", 0) or 0
        return "token_type_ids" in known and kinds > 1 and not self.causal

    @cached_property
    def _output_fields(self) -> Fields:
        return fields_of(type(self.model))


def wrap(model: Any, tokenizer: Any, name: str, *, absent: frozenset[str] = frozenset()) -> HuggingFaceEncoder:
    """A transformers model as an encoder; the model is put in evaluation mode and is otherwise left as it is.

    Refused where a trial pass does not show the attention of every layer and head, or changes what the model computes.
    """
    model.eval()
    families.teach(model)
    blocks.teach(model)
    stated = model.config.model_type == "gpt2" or bool(getattr(model.config, "is_decoder", False))
    encoder = HuggingFaceEncoder(name, model, tokenizer, _tokeniser(tokenizer, name), absent, causal=stated)
    vocabulary = int(model.get_input_embeddings().weight.shape[0])
    causal = trial.looks_back(encoder, lambda batch: encoder.run_alone(batch, hidden=True), vocabulary=vocabulary)
    return replace(encoder, causal=causal)


def from_config(kind: Any, config: Any, seed: int) -> Any:
    """A model of this class with fresh weights, the same for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return kind(config)


def _tokeniser(tokenizer: Any, name: str) -> Tokeniser:
    if not tokenizer.is_fast:
        raise Refusal(
            f"{name} has only a slow tokeniser ({type(tokenizer).__name__})",
            "a fast one (tokenizer.json), which gives the character offsets that words are aligned by",
            "Convert it with transformers' AutoTokenizer where its dependencies are installed, and save it again",
        )
    return Tokeniser(
        tokenizer.backend_tokenizer.to_str(),
        cls=frozenset({tokenizer.cls_token_id, tokenizer.bos_token_id} - {None}),
        sep=frozenset({tokenizer.sep_token_id, tokenizer.eos_token_id} - {None}),
        unknown=tokenizer.unk_token_id,
        split_special=tokenizer.split_special_tokens,
    )
