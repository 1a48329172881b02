"""What `wrap` refuses, and what it leaves alone."""

from __future__ import annotations

import copy
import threading
import warnings
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

import models
from bertology.encoder.attend import Gates, LayerActivations
from bertology.encoder.encoder import Batch
from bertology.encoder.huggingface import HuggingFaceEncoder, wrap
from bertology.errors import Refusal
from models import FAMILIES, HEADS, LAYERS, WIDTH


def _batch() -> Batch:
    """Ids that every tiny model knows, of two lengths."""
    ids = torch.arange(5, 23).view(2, 9)
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    return Batch(ids, torch.zeros_like(ids), mask)


def _own(model: Any) -> Tensor:
    batch = _batch()
    with torch.inference_mode():
        return model(input_ids=batch.ids, attention_mask=batch.mask).last_hidden_state


def _maps(encoder: HuggingFaceEncoder) -> list[Tensor]:
    seen: list[LayerActivations] = []
    with torch.inference_mode():
        encoder.run(_batch(), on_layer=seen.append)
    return [layer.attention for layer in seen]


def _unsupported() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return {
            "funnel": transformers.FunnelModel(
                transformers.FunnelConfig(
                    vocab_size=99, block_sizes=[1, 1], d_model=WIDTH, n_head=HEADS, d_head=8, d_inner=48
                )
            ),
            "xlnet": transformers.XLNetModel(
                transformers.XLNetConfig(vocab_size=99, d_model=WIDTH, n_layer=LAYERS, n_head=HEADS, d_inner=48)
            ),
            "deberta v1": transformers.DebertaModel(
                transformers.DebertaConfig(
                    vocab_size=99,
                    hidden_size=WIDTH,
                    num_hidden_layers=2,
                    num_attention_heads=HEADS,
                    intermediate_size=48,
                )
            ),
            "t5 with a decoder": transformers.T5Model(
                transformers.T5Config(vocab_size=99, d_model=WIDTH, num_layers=2, num_heads=HEADS, d_kv=8, d_ff=48)
            ),
            # Fewer keys than queries: other numbers would come out of our attention, or none.
            "llama": transformers.LlamaModel(
                transformers.LlamaConfig(
                    vocab_size=99,
                    hidden_size=WIDTH,
                    num_hidden_layers=2,
                    num_attention_heads=HEADS,
                    num_key_value_heads=2,
                    intermediate_size=48,
                )
            ),
        }


@pytest.mark.parametrize("name", ["funnel", "xlnet", "deberta v1", "t5 with a decoder", "llama"])
def test_a_family_that_cannot_be_watched_is_refused(name: str) -> None:
    model = _unsupported()[name]
    with pytest.raises(Refusal, match="Choose a model of a supported family: BERT, RoBERTa"):
        wrap(model, models.tokenizer("bert"), name)


def test_a_model_that_attends_by_more_than_we_are_told_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As families do that squash their scores, or add a sink: all layers are seen, and the numbers are wrong."""
    model = models.model("bert")
    first = model.encoder.layer[0].attention.self
    monkeypatch.setattr(first, "scaling", first.scaling)
    original = type(first).forward

    def squashed(*args: Any, **kwargs: Any) -> Any:
        output, weights = original(first, *args, **kwargs)
        return (output.tanh() if model.config._attn_implementation != "bertology" else output), weights

    monkeypatch.setattr(first, "forward", squashed)
    with pytest.raises(Refusal, match="does not compute the same"):
        wrap(model, models.tokenizer("bert"), "squashed")


def test_a_slow_tokeniser_is_refused() -> None:
    class Slow:
        is_fast = False

    with pytest.raises(Refusal, match="only a slow tokeniser"):
        wrap(models.model("bert"), Slow(), "slow")


@pytest.mark.parametrize("name", FAMILIES)
def test_outside_of_a_run_the_model_is_as_it_was(name: str) -> None:
    model = models.model(name)
    before, implementation = _own(model), model.config._attn_implementation
    encoder = wrap(model, models.tokenizer(name), name)
    uniform = torch.ones(encoder.layers, encoder.heads, dtype=torch.bool)
    _maps(encoder.gated(Gates(uniform=uniform)))
    torch.testing.assert_close(_own(model), before, atol=0, rtol=0)
    assert model.config._attn_implementation == implementation


@pytest.mark.parametrize("name", FAMILIES)
def test_a_copy_of_a_wrapped_model_is_a_model_of_its_own(name: str) -> None:
    model = models.model(name)
    wrap(model, models.tokenizer(name), name)
    copied = copy.deepcopy(model)
    before = _own(copied)
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
    torch.testing.assert_close(_own(copied), before, atol=0, rtol=0)


@pytest.mark.parametrize("name", ["bert", "deberta-v2"])
def test_wrapping_twice_is_wrapping_once(name: str) -> None:
    model = models.model(name)
    once = _maps(wrap(model, models.tokenizer(name), name))
    for ours, theirs in zip(once, _maps(wrap(model, models.tokenizer(name), name)), strict=True):
        torch.testing.assert_close(ours, theirs, atol=0, rtol=0)


def test_a_model_still_returns_its_own_attention() -> None:
    model = models.model("gpt2")
    model.set_attn_implementation("eager")
    wrap(model, models.tokenizer("gpt2"), "gpt2")
    returned = model(input_ids=_batch().ids, output_attentions=True)
    assert len(returned.attentions) == LAYERS


@pytest.mark.parametrize("names", [("bert", "gpt2"), ("deberta-v2", "mpnet"), ("modernbert", "bert")])
def test_two_encoders_by_turns_do_not_disturb_each_other(names: tuple[str, str]) -> None:
    """One pass runs inside another's: each sees its own layers."""
    outer, inner = (models.encoder(name) for name in names)
    alone = _maps(outer), _maps(inner)
    inside: list[list[Tensor]] = []
    seen: list[Tensor] = []

    def watch(layer: LayerActivations) -> None:
        seen.append(layer.attention)
        inside.append(_maps(inner))

    with torch.inference_mode():
        outer.run(_batch(), on_layer=watch)
    for ours, theirs in zip(seen, alone[0], strict=True):
        torch.testing.assert_close(ours, theirs, atol=0, rtol=0)
    for some in inside:
        for ours, theirs in zip(some, alone[1], strict=True):
            torch.testing.assert_close(ours, theirs, atol=0, rtol=0)


def test_models_that_share_a_configuration_do_not_disturb_each_other() -> None:
    first = models.model("bert")
    second = type(first)(first.config).eval()
    before = _own(second)
    encoder = wrap(first, models.tokenizer("bert"), "first")
    between: list[Tensor] = []
    with torch.inference_mode():
        encoder.run(_batch(), on_layer=lambda _: between.append(_own(second)))
    torch.testing.assert_close(_own(second), before, atol=0, rtol=0)
    # While the first is being watched the second attends by the same means, unseen.
    for output in between:
        torch.testing.assert_close(output, before, atol=1e-5, rtol=1e-5)


def test_passes_side_by_side_in_threads_see_all_their_layers() -> None:
    encoder = models.encoder("bert")
    expected = _maps(encoder)
    failures: list[str] = []

    def work() -> None:
        for _ in range(20):
            maps = _maps(encoder)
            if len(maps) != len(expected) or not all(map(torch.equal, maps, expected)):
                failures.append("other maps")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert encoder.model.config._attn_implementation == "eager"
