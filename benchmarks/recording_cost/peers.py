"""Other ways to get attention and hidden states: loops over transformers, nnsight and TransformerLens."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from recording_cost.setup import BenchmarkSetup

Run = Callable[[], Any]
MakeRun = Callable[[BenchmarkSetup], Run]


class NotInstalled(Exception):
    """The library is not installed."""


def _text_batches(texts: Sequence[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(texts), size):
        yield list(texts[start : start + size])


def _without_padding(layers: Sequence[torch.Tensor], lengths: Sequence[int], *, is_attention: bool) -> list[Any]:
    """One array per sentence without padding, as a careful user would store it."""
    stacked = torch.stack(tuple(layers))
    if is_attention:
        return [stacked[:, row, :, :n, :n].numpy().copy() for row, n in enumerate(lengths)]
    return [stacked[:, row, :n].numpy().copy() for row, n in enumerate(lengths)]


def _loop(size: int, **padding: Any) -> MakeRun:
    def make_run(setup: BenchmarkSetup) -> Run:
        model = setup.plain_model("eager")
        tokenizer = setup.encoder.hf_tokenizer

        def run() -> list[Any]:
            arrays: list[Any] = []
            with torch.inference_mode():
                for texts in _text_batches(setup.texts, size):
                    inputs = tokenizer(texts, return_tensors="pt", truncation=True, **padding)
                    output = model(**inputs, output_attentions=True, output_hidden_states=True)
                    lengths = inputs["attention_mask"].sum(1).tolist()
                    arrays += _without_padding(output.attentions, lengths, is_attention=True)
                    arrays += _without_padding(output.hidden_states, lengths, is_attention=False)
            return arrays

        return run

    return make_run


def _nnsight(setup: BenchmarkSetup) -> Run:
    if importlib.util.find_spec("nnsight") is None:
        raise NotInstalled("not installed")
    nnsight: Any = importlib.import_module("nnsight")
    with warnings.catch_warnings(action="ignore"):
        traced = nnsight.NNsight(setup.plain_model("eager"))
    batches = setup.batches()

    def run() -> list[Any]:
        arrays: list[Any] = []
        with torch.inference_mode():
            for batch in batches:
                lengths = batch.attention_mask.sum(1).tolist()
                with traced.trace(
                    input_ids=batch.input_ids,
                    attention_mask=batch.attention_mask,
                    token_type_ids=batch.token_type_ids,
                    output_attentions=True,
                    output_hidden_states=True,
                ):
                    output = traced.output.save()
                arrays += _without_padding(output.attentions, lengths, is_attention=True)
                arrays += _without_padding(output.hidden_states, lengths, is_attention=False)
        return arrays

    return run


def _transformer_lens(setup: BenchmarkSetup) -> Run:
    """`run_with_cache` filtered to attention and hidden states; its adapter needs, and computes, an MLM head."""
    if importlib.util.find_spec("transformer_lens") is None:
        raise NotInstalled("not installed")
    from transformers import BertForMaskedLM

    encoder = setup.plain_model("eager")
    with_head = BertForMaskedLM(encoder.config).eval()
    with_head.bert.load_state_dict(encoder.state_dict(), strict=False)
    bridge: Any = importlib.import_module("transformer_lens.model_bridge").TransformerBridge
    hooked = bridge.boot_transformers(
        "google-bert/bert-base-uncased", hf_model=with_head, tokenizer=setup.encoder.hf_tokenizer
    )
    batches = setup.batches()
    layers = range(setup.encoder.layers)
    patterns = [f"blocks.{layer}.attn.hook_pattern" for layer in layers]
    states = ["blocks.0.hook_in", *(f"blocks.{layer}.hook_out" for layer in layers)]

    def run() -> list[Any]:
        arrays: list[Any] = []
        with torch.inference_mode():
            for batch in batches:
                _, cache = hooked.run_with_cache(
                    batch.input_ids,
                    attention_mask=batch.attention_mask,
                    token_type_ids=batch.token_type_ids,
                    names_filter=[*patterns, *states],
                )
                lengths = batch.attention_mask.sum(1).tolist()
                arrays += _without_padding([cache[name] for name in patterns], lengths, is_attention=True)
                arrays += _without_padding([cache[name] for name in states], lengths, is_attention=False)
        return arrays

    return run


PEERS: dict[str, MakeRun] = {
    "transformers eager, one sentence at a time": _loop(1),
    "transformers eager, 32 in file order": _loop(32, padding=True),
    "transformers eager, 16 padded to 128": _loop(16, padding="max_length", max_length=128),
    "nnsight, bertology's batches": _nnsight,
    "TransformerLens, bertology's batches, with an MLM head": _transformer_lens,
}
