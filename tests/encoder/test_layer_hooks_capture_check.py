"""`wrap` refuses models whose attention cannot be captured, and leaves the others unchanged."""

from __future__ import annotations

import copy
import threading
import warnings
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

import tiny_models
from bertology.encoder.attention_hook import Gates, LayerActivations
from bertology.encoder.encoder import ModelInputs, TaskEncoder
from bertology.encoder.huggingface import wrap
from bertology.errors import Refusal
from tiny_models import FAMILIES, HEADS, LAYERS, WIDTH


def _batch() -> ModelInputs:
    """Two inputs of different lengths, of ids in every tiny vocabulary."""
    ids = torch.arange(5, 23).view(2, 9)
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    return ModelInputs(ids, torch.zeros_like(ids), mask)


def _last_state(model: Any) -> Tensor:
    batch = _batch()
    with torch.inference_mode():
        return model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).last_hidden_state


def _attention(encoder: TaskEncoder) -> list[Tensor]:
    activations: list[LayerActivations] = []
    with torch.inference_mode():
        encoder.forward(_batch(), on_layer=activations.append)
    return [layer.attention for layer in activations]


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
            "t5": transformers.T5Model(
                transformers.T5Config(vocab_size=99, d_model=WIDTH, num_layers=2, num_heads=HEADS, d_kv=8, d_ff=48)
            ),
        }


@pytest.mark.parametrize("name", ["funnel", "xlnet", "deberta v1", "t5"])
def test_a_family_whose_attention_cannot_be_captured_is_refused(name: str) -> None:
    model = _unsupported()[name]
    with pytest.raises(Refusal, match=r"Choose a model of a supported family: ALBERT, BERT, .*RoBERTa"):
        wrap(model, tiny_models.hf_tokenizer("bert"), name)


def test_a_model_that_changes_its_attention_output_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in families that squash their scores or add a sink: the hook sees all layers, but the numbers are wrong."""
    model = tiny_models.model("bert")
    first = model.encoder.layer[0].attention.self
    monkeypatch.setattr(first, "scaling", first.scaling)
    original = type(first).forward

    def squashed(*args: Any, **kwargs: Any) -> Any:
        output, weights = original(first, *args, **kwargs)
        return (output.tanh() if model.config._attn_implementation != "bertology" else output), weights

    monkeypatch.setattr(first, "forward", squashed)
    with pytest.raises(Refusal, match="computes different hidden states"):
        wrap(model, tiny_models.hf_tokenizer("bert"), "squashed")


def test_a_slow_tokeniser_is_refused() -> None:
    class Slow:
        is_fast = False

    with pytest.raises(Refusal, match="only a slow tokeniser"):
        wrap(tiny_models.model("bert"), Slow(), "slow")


@pytest.mark.parametrize("name", FAMILIES)
def test_between_forward_passes_the_model_is_unchanged(name: str) -> None:
    model = tiny_models.model(name)
    before, implementation = _last_state(model), model.config._attn_implementation
    encoder = wrap(model, tiny_models.hf_tokenizer(name), name)
    uniform = torch.ones(encoder.layers, encoder.heads, dtype=torch.bool)
    _attention(encoder.with_gates(Gates(uniform=uniform)))
    torch.testing.assert_close(_last_state(model), before, atol=0, rtol=0)
    assert model.config._attn_implementation == implementation


@pytest.mark.parametrize("name", FAMILIES)
def test_a_copy_of_a_wrapped_model_is_independent(name: str) -> None:
    model = tiny_models.model(name)
    wrap(model, tiny_models.hf_tokenizer(name), name)
    copied = copy.deepcopy(model)
    before = _last_state(copied)
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
    torch.testing.assert_close(_last_state(copied), before, atol=0, rtol=0)


@pytest.mark.parametrize("name", ["bert", "deberta-v2"])
def test_wrapping_is_idempotent(name: str) -> None:
    model = tiny_models.model(name)
    first, second = (_attention(wrap(model, tiny_models.hf_tokenizer(name), name)) for _ in range(2))
    torch.testing.assert_close(first, second, atol=0, rtol=0)


def test_a_wrapped_model_still_returns_its_attention() -> None:
    model = tiny_models.model("gpt2")
    model.set_attn_implementation("eager")
    wrap(model, tiny_models.hf_tokenizer("gpt2"), "gpt2")
    returned = model(input_ids=_batch().input_ids, output_attentions=True)
    assert len(returned.attentions) == LAYERS


@pytest.mark.parametrize("names", [("bert", "gpt2"), ("deberta-v2", "mpnet"), ("modernbert", "bert")])
def test_nested_forward_passes_of_two_encoders_are_independent(names: tuple[str, str]) -> None:
    """A forward pass inside the callback of another: each hook sees the layers of its encoder."""
    outer, inner = (tiny_models.encoder(name) for name in names)
    outer_alone, inner_alone = _attention(outer), _attention(inner)
    outer_nested: list[Tensor] = []
    inner_nested: list[list[Tensor]] = []

    def on_layer(layer: LayerActivations) -> None:
        outer_nested.append(layer.attention)
        inner_nested.append(_attention(inner))

    with torch.inference_mode():
        outer.forward(_batch(), on_layer=on_layer)
    torch.testing.assert_close(outer_nested, outer_alone, atol=0, rtol=0)
    torch.testing.assert_close(inner_nested, [inner_alone] * outer.layers, atol=0, rtol=0)


def test_models_that_share_a_configuration_are_independent() -> None:
    first = tiny_models.model("bert")
    second = type(first)(first.config).eval()
    before = _last_state(second)
    encoder = wrap(first, tiny_models.hf_tokenizer("bert"), "first")
    between: list[Tensor] = []
    with torch.inference_mode():
        encoder.forward(_batch(), on_layer=lambda _: between.append(_last_state(second)))
    torch.testing.assert_close(_last_state(second), before, atol=0, rtol=0)
    # During the first model's pass the second uses the same implementation, without a hook.
    for output in between:
        torch.testing.assert_close(output, before, atol=1e-5, rtol=1e-5)


def test_forward_passes_in_parallel_threads_capture_all_layers() -> None:
    encoder = tiny_models.encoder("bert")
    expected = _attention(encoder)
    failures: list[str] = []

    def work() -> None:
        for _ in range(20):
            attention = _attention(encoder)
            if len(attention) != len(expected) or not all(map(torch.equal, attention, expected)):
                failures.append("different attention")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert encoder.model.config._attn_implementation == "eager"
