"""The data of a page for one model and one input: attention and other quantities, queries and keys, gold arcs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example, TextInput
from bertology.corpus.sentence import Sentence, sentence_from_text
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record
from bertology.recording.sites import ReducedSite, Site
from bertology.statistics.transformed_values import transformed_values_per_head
from bertology.views.dependency_arcs import gold_tree
from bertology.views.model_names import short_model_name
from bertology.views.payload import FINE_LEVELS, ModelRun, Quantity, ViewToken, quantise

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations
    from bertology.encoder.encoder import Encoder
    from bertology.encoder.token_batch import TokenBatch
    from bertology.encoder.tokens import TokenisedInput
    from bertology.recording.recording import Recording

Text = str | Sentence | Example
QUANTITIES: dict[str, str] = {
    "attention": "attention weights; each row sums to 1",
    "norm": "norm-weighted attention ‖αf(x)‖ (Kobayashi et al. 2020)",
    "gradient": "attention times the gradient of the objective, signed",
}
QUANTITY_CITATIONS: dict[str, tuple[str, ...]] = {"norm": ("kobayashi2020",)}
UNKNOWN_TOKENS = frozenset({"[UNK]", "<unk>", "<UNK>", "<|unk|>"})
"""What tokenisers write for text that their vocabulary lacks."""
MAX_NEURON_TOKENS = 128
"""Queries and keys of longer inputs are left out unless they are requested."""


def _norms(layer: LayerActivations, _batch: TokenBatch, _prepared: Any) -> Tensor:
    """(batch, head, from, to) norm of attention times f(x)."""
    return layer.attention.float() * transformed_values_per_head(layer).norm(dim=-1).unsqueeze(2)


def _gradients(layer: LayerActivations, _batch: TokenBatch, _prepared: Any) -> Tensor:
    """(batch, head, from, to) attention times its gradient, signed."""
    assert layer.gradient is not None, "declared as a gradient site"
    return (layer.attention * layer.gradient).detach()


def _value_norms(layer: LayerActivations, _batch: TokenBatch, _prepared: Any) -> Tensor:
    """(batch, head, token) norm of f(x); NaN for model families with an unknown output projection."""
    if layer.post_attention is None or layer.value is None:
        return layer.attention.new_full(layer.attention.shape[:3], float("nan"))
    return transformed_values_per_head(layer).norm(dim=-1)


VALUE_NORMS = ReducedSite("view.value_norm", ("token",), "norm of f(x)", _value_norms, needs_values=True)
SITES: dict[str, ReducedSite] = {
    "norm": ReducedSite("view.norm", ("from", "to"), "norm of attention x f(x)", _norms, needs_values=True),
    "gradient": ReducedSite(
        "view.gradient", ("from", "to"), "attention x its gradient", _gradients, needs_gradient=True
    ),
}


def build_input(text: Text, text_b: Text | None = None) -> TextInput:
    """The input of the encoder: one text or a pair, with its annotations."""
    if isinstance(text, Example) and text_b is None:
        return text.text_inputs[0]
    return TextInput(tuple(_sentence(segment) for segment in (text, text_b) if segment is not None))


def _sentence(text: Text) -> Sentence:
    if isinstance(text, Example):
        return text.segments[0]
    return sentence_from_text(text) if isinstance(text, str) else text


def build_model_run(encoder: Encoder, input_: TextInput, quantities: Sequence[str], neurons: bool | None) -> ModelRun:
    """Run the model on the input and quantise what the page shows."""
    n_tokens = len(encoder.tokenise([input_])[0])
    if n_tokens > encoder.max_length:
        raise Refusal(
            f"The text has {n_tokens} tokens",
            f"at most {encoder.max_length}, the maximum length of {encoder.name}",
            "Shorten the text, or choose a model with a larger maximum length",
        )
    with_neurons = n_tokens <= MAX_NEURON_TOKENS if neurons is None else neurons
    sites: list[Site | str] = ["attention", VALUE_NORMS, *(["query", "key"] if with_neurons else [])]
    sites += [SITES[name] for name in quantities[1:]]
    # The score of a sentence needs no masked tokens, which the page would not show.
    objective = "prediction" if encoder.task_heads & {"label", "nsp", "choice", "sop"} else "auto"
    kind = "sentence" if len(input_.segments) == 1 else "pair"
    corpus = Corpus((Example(input_.segments, kind, id="1"),), name="text")
    recording = record(encoder, corpus, sites, config=RecordingConfig(objective=objective), max_hours=None)
    return recorded_model_run(recording, 0, quantities, neurons=with_neurons)


def recorded_model_run(
    recording: Recording, index: int, quantities: Sequence[str], *, neurons: bool | None
) -> ModelRun:
    """One input of a recording; queries, keys and value norms are included if they were recorded.

    With `neurons`, queries and keys that were not recorded are refused.
    """
    encoder, recorded = recording.encoder, recording.inputs[index]
    weights = {name: _quantity(recording, index, name) for name in quantities}
    value_norms = _array(recording, VALUE_NORMS, index)[:, :, None] if _has(recording, VALUE_NORMS) else None
    if neurons is None:
        neurons = _has(recording, "query", "key") and len(recorded.tokens) <= MAX_NEURON_TOKENS
    tree = gold_tree(recorded.text)
    tokens = view_tokens(recorded.tokens, recorded.text.words)
    return ModelRun(
        name=short_model_name(encoder.name),
        model=short_model_name(encoder.name),
        tokens=tokens,
        words=list(recorded.text.words),
        is_pair=len(recorded.text.segments) > 1,
        causal=encoder.causal,
        attention_windows=list(encoder.attention_windows),
        quantities=[
            Quantity(
                name=name,
                description=QUANTITIES[name],
                weights=quantise(values),
                citations=list(QUANTITY_CITATIONS.get(name, ())),
            )
            for name, values in weights.items()
        ],
        value_norms=quantise(value_norms, levels=FINE_LEVELS)
        if value_norms is not None and np.isfinite(value_norms).all()
        else None,
        # Fine steps are enough for products: the model's own weights stand beside them, exactly.
        query=quantise(_array(recording, "query", index), levels=FINE_LEVELS) if neurons else None,
        key=quantise(_array(recording, "key", index), levels=FINE_LEVELS) if neurons else None,
        labels=[],
        trees=[tree] if tree else [],
        focus=head_focus(weights["attention"], tokens),
    )


def head_focus(attention: NDArray[np.float32], tokens: Sequence[ViewToken]) -> list[list[float]]:
    """For each layer and head the mean over tokens that are not special of the strongest weight on another of them."""
    is_text = np.array([not token.special for token in tokens])
    excluded = ~is_text[None, :] | np.eye(len(tokens), dtype=np.bool_)
    if is_text.sum() < 2:
        return []
    strongest = [np.where(excluded, 0, layer).max(-1)[:, is_text].mean(-1) for layer in attention]
    return [[round(float(value), 4) for value in layer] for layer in strongest]


def _quantity(recording: Recording, index: int, name: str) -> NDArray[np.float32]:
    if name == "gradient" and not _has(recording, SITES[name]) and _has(recording, "attention", "attention_gradient"):
        return _array(recording, "attention", index) * _array(recording, "attention_gradient", index)
    return _array(recording, SITES.get(name, name), index)


def _has(recording: Recording, *sites: Site | str) -> bool:
    return all((site if isinstance(site, str) else site.storage_key) in recording.sites for site in sites)


def _array(recording: Recording, site: Site | str, index: int) -> NDArray[np.float32]:
    return np.asarray(recording[site][index], np.float32)


def view_tokens(tokenised_input: TokenisedInput, words: Sequence[str]) -> list[ViewToken]:
    """The tokens of an input; a special token belongs to the segment it ends or begins."""
    second = np.flatnonzero(tokenised_input.segment_ids == 1)
    start = int(second[0]) if len(second) else len(tokenised_input)
    return [
        ViewToken(
            text=token,
            word_index=(word := int(tokenised_input.word_ids[index])),
            segment=int(index >= start),
            special=bool(tokenised_input.special_kinds[index] != SpecialToken.NONE),
            source=words[word] if word >= 0 and token in UNKNOWN_TOKENS else "",
        )
        for index, token in enumerate(tokenised_input.tokens)
    ]
