"""Attention, hidden states and logits of every family equal those of transformers' eager attention."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

import tiny_models
from bertology.corpus.example import TextInput
from bertology.encoder.attention_hook import LayerActivations
from bertology.encoder.encoder import ModelOutput, TaskEncoder
from bertology.encoder.huggingface import wrap
from bertology.encoder.tokens import TokenisedInput
from tiny_models import ALL_FAMILIES, ALL_KINDS, TEXTS, VARIANTS

TOLERANCE = 1e-5
PAIRS = [("Did she see it?", "She saw the lights of the town."), ("A dog!", "It rains."), ("It", "Why?")]


@cache
def _reference(name: str, kind: str = "Model") -> Any:
    return tiny_models.reference(tiny_models.encoder(name, kind))


def _run(encoder: TaskEncoder, tokens: Sequence[TokenisedInput]) -> tuple[list[LayerActivations], ModelOutput]:
    activations: list[LayerActivations] = []
    with torch.inference_mode():
        output = encoder.forward(tiny_models.batch(tokens), on_layer=activations.append, hidden=True)
    return activations, output


def _expected(reference: Any, encoder: TaskEncoder, tokens: TokenisedInput) -> Any:
    """One input without padding, as a user of transformers would run it."""
    arguments = {"input_ids": torch.tensor(tokens.ids).long()[None]}
    if reference.config.model_type in {"bert", "electra", "albert"} or getattr(reference.config, "type_vocab_size", 0):
        arguments["token_type_ids"] = torch.tensor(tokens.type_ids).long()[None]
    if "choice" in encoder.task_heads:
        arguments = {name: tensor[None] for name, tensor in arguments.items()}
    with torch.inference_mode():
        return reference(**arguments, output_hidden_states=True)


def _assert_parity(reference: Any, encoder: TaskEncoder, inputs: list[TextInput], batch_size: int) -> None:
    tokens = encoder.tokenise(inputs)
    for start in range(0, len(tokens), batch_size):
        batch = tokens[start : start + batch_size]
        activations, output = _run(encoder, batch)
        assert [layer.layer for layer in activations] == list(range(encoder.layers))
        for row, row_tokens in enumerate(batch):
            expected = _expected(reference, encoder, row_tokens)
            length = len(row_tokens)
            for layer, attention in zip(activations, expected.attentions, strict=True):
                _assert_close(layer.attention[row, :, :length, :length], attention[0])
                assert float(layer.attention[row, :, :length, length:].abs().sum()) == 0
            for actual, states in zip(output.hidden_states, expected.hidden_states, strict=True):
                _assert_close(actual[row, :length], states[0])


def _assert_close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=TOLERANCE, rtol=TOLERANCE)


@pytest.mark.parametrize("batch_size", [1, 2, len(TEXTS)])
@pytest.mark.parametrize("name", ALL_FAMILIES)
def test_attention_and_hidden_states_equal_those_of_transformers(name: str, batch_size: int) -> None:
    _assert_parity(_reference(name), tiny_models.encoder(name), tiny_models.inputs(), batch_size)


@pytest.mark.parametrize("name", ALL_FAMILIES)
def test_text_pairs_equal_those_of_transformers(name: str) -> None:
    _assert_parity(_reference(name), tiny_models.encoder(name), tiny_models.inputs(PAIRS), len(PAIRS))


@pytest.mark.parametrize("name", VARIANTS)
def test_other_configurations_of_a_family_equal_those_of_transformers(name: str) -> None:
    _assert_parity(_reference(name), tiny_models.encoder(name), tiny_models.inputs(), 4)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("name", [name for name in ALL_FAMILIES if name not in {"mpnet", "deberta-v2"}])
def test_parity_for_models_with_any_attention_implementation(name: str, implementation: str) -> None:
    model = tiny_models.model(name)
    model.set_attn_implementation(implementation)  # ModernBERT in transformers before 5.8 keeps its own
    implementation = model.config._attn_implementation
    encoder = wrap(model, tiny_models.hf_tokenizer(name), name)
    _assert_parity(_reference(name), encoder, tiny_models.inputs()[:2], 2)
    assert model.config._attn_implementation == implementation


@pytest.mark.parametrize(("name", "kind"), ALL_KINDS)
def test_logits_equal_those_of_transformers(name: str, kind: str) -> None:
    encoder = tiny_models.encoder(name, kind)
    reference = _reference(name, kind)
    tokens = encoder.tokenise(tiny_models.inputs(PAIRS if kind == "ForMultipleChoice" else TEXTS))
    _, output = _run(encoder, tokens)
    with torch.inference_mode():
        without_hook = encoder.forward(tiny_models.batch(tokens))
    fields = {
        "mlm": "prediction_logits" if kind == "ForPreTraining" else "logits",
        "nsp": "seq_relationship_logits" if kind == "ForPreTraining" else "logits",
        "sop": "sop_logits",
        "answer_start": "start_logits",
        "answer_end": "end_logits",
    }
    assert set(output.logits) == encoder.task_heads
    assert bool(encoder.task_heads) == (kind != "Model")
    for row, row_tokens in enumerate(tokens):
        output_alone = _expected(reference, encoder, row_tokens)
        for task_head, logits in output.logits.items():
            expected = getattr(output_alone, fields.get(task_head, "logits"))[0]
            is_per_token = task_head in {"mlm", "lm", "token", "answer_start", "answer_end", "replaced"}
            unpadded = slice(len(row_tokens)) if is_per_token else slice(None)
            _assert_close(logits[row][unpadded], expected)
            _assert_close(without_hook.logits[task_head][row][unpadded], expected)


@pytest.mark.parametrize("name", ALL_FAMILIES)
def test_hidden_states_with_and_without_a_hook_are_equal(name: str) -> None:
    encoder = tiny_models.encoder(name)
    tokens = encoder.tokenise(tiny_models.inputs())
    _, hooked = _run(encoder, tokens)
    with torch.inference_mode():
        without_hook = encoder.forward(tiny_models.batch(tokens), hidden=True)
    mask = tiny_models.batch(tokens).attention_mask.bool()
    for first, second in zip(hooked.hidden_states, without_hook.hidden_states, strict=True):
        _assert_close(first[mask], second[mask])


@pytest.mark.parametrize("name", ALL_FAMILIES)
def test_the_attention_of_tiny_models_is_not_uniform(name: str) -> None:
    """Nearly uniform attention would pass every comparison."""
    encoder = tiny_models.encoder(name)
    activations, _ = _run(encoder, encoder.tokenise(tiny_models.inputs(TEXTS[3:4])))
    for layer in activations:
        assert float(layer.attention.max(-1).values.mean()) > 3 / layer.attention.shape[-1]


def test_the_attention_window_of_modernbert_is_captured() -> None:
    encoder = tiny_models.encoder("modernbert")
    activations, _ = _run(encoder, encoder.tokenise(tiny_models.inputs(TEXTS[3:4])))
    widths = [int(((layer.attention[0, 0] > 0).sum(-1)).max()) for layer in activations]
    assert widths[0] == activations[0].attention.shape[-1]
    assert widths[1] == widths[2] == 7
