"""What people do today: loops over transformers, nnsight, TransformerLens; each keeps attention and hidden states."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from recording_cost.material import Setting

Run = Callable[[], Any]
Make = Callable[[Setting], Run]


class NotInstalled(Exception):
    """A peer that is not here."""


def _texts(texts: Sequence[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(texts), size):
        yield list(texts[start : start + size])


def _kept(layers: Sequence[torch.Tensor], lengths: Sequence[int], *, squares: bool) -> list[Any]:
    """One array a sentence without padding, as a careful user would keep it."""
    stacked = torch.stack(tuple(layers))
    if squares:
        return [stacked[:, row, :, :n, :n].numpy().copy() for row, n in enumerate(lengths)]
    return [stacked[:, row, :n].numpy().copy() for row, n in enumerate(lengths)]


def _loop(size: int, **padding: Any) -> Make:
    def make(ours: Setting) -> Run:
        model = ours.plain_model("eager")
        tokenizer = ours.encoder.hf_tokenizer

        def run() -> list[Any]:
            kept: list[Any] = []
            with torch.inference_mode():
                for texts in _texts(ours.texts, size):
                    fed = tokenizer(texts, return_tensors="pt", truncation=True, **padding)
                    out = model(**fed, output_attentions=True, output_hidden_states=True)
                    lengths = fed["attention_mask"].sum(1).tolist()
                    kept += _kept(out.attentions, lengths, squares=True)
                    kept += _kept(out.hidden_states, lengths, squares=False)
            return kept

        return run

    return make


def _nnsight(ours: Setting) -> Run:
    if importlib.util.find_spec("nnsight") is None:
        raise NotInstalled("not installed")
    nnsight: Any = importlib.import_module("nnsight")
    with warnings.catch_warnings(action="ignore"):
        traced = nnsight.NNsight(ours.plain_model("eager"))
    batches = ours.batches()

    def run() -> list[Any]:
        kept: list[Any] = []
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
                    out = traced.output.save()
                kept += _kept(out.attentions, lengths, squares=True)
                kept += _kept(out.hidden_states, lengths, squares=False)
        return kept

    return run


def _transformer_lens(ours: Setting) -> Run:
    """`run_with_cache` filtered to maps and block outputs. Its adapter needs a MLM head, and it pays for one."""
    if importlib.util.find_spec("transformer_lens") is None:
        raise NotInstalled("not installed")
    from transformers import BertForMaskedLM

    bare = ours.plain_model("eager")
    with_head = BertForMaskedLM(bare.config).eval()
    with_head.bert.load_state_dict(bare.state_dict(), strict=False)
    bridge: Any = importlib.import_module("transformer_lens.model_bridge").TransformerBridge
    hooked = bridge.boot_transformers(
        "google-bert/bert-base-uncased", hf_model=with_head, tokenizer=ours.encoder.hf_tokenizer
    )
    batches = ours.batches()
    layers = range(ours.encoder.layers)
    maps = [f"blocks.{layer}.attn.hook_pattern" for layer in layers]
    states = ["blocks.0.hook_in", *(f"blocks.{layer}.hook_out" for layer in layers)]

    def run() -> list[Any]:
        kept: list[Any] = []
        with torch.inference_mode():
            for batch in batches:
                _, cache = hooked.run_with_cache(
                    batch.input_ids,
                    attention_mask=batch.attention_mask,
                    token_type_ids=batch.token_type_ids,
                    names_filter=[*maps, *states],
                )
                lengths = batch.attention_mask.sum(1).tolist()
                kept += _kept([cache[name] for name in maps], lengths, squares=True)
                kept += _kept([cache[name] for name in states], lengths, squares=False)
        return kept

    return run


PEERS: dict[str, Make] = {
    "transformers eager, one sentence at a time": _loop(1),
    "transformers eager, 32 in file order": _loop(32, padding=True),
    "transformers eager, 16 padded to 128": _loop(16, padding="max_length", max_length=128),
    "nnsight, bertology's batches": _nnsight,
    "TransformerLens, bertology's batches, with an MLM head": _transformer_lens,
}
