"""Every family computes what transformers' eager attention computes: attention, hidden states and logits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

import models
from bertology.corpus.corpus import Input
from bertology.encoder.attend import LayerActivations
from bertology.encoder.encoder import Output
from bertology.encoder.huggingface import HuggingFaceEncoder, wrap
from bertology.encoder.pieces import Pieces
from models import FAMILIES, KINDS, TEXTS, VARIANTS

TOLERANCE = 1e-5
PAIRS = [("Did she see it?", "She saw the lights of the town."), ("A dog!", "It rains."), ("It", "Why?")]


@cache
def _reference(name: str, kind: str = "Model") -> Any:
    return models.reference(models.encoder(name, kind))


def _watched(encoder: HuggingFaceEncoder, pieces: Sequence[Pieces]) -> tuple[list[LayerActivations], Output]:
    seen: list[LayerActivations] = []
    with torch.inference_mode():
        output = encoder.run(models.batch(pieces), on_layer=seen.append, hidden=True)
    return seen, output


def _expected(reference: Any, encoder: HuggingFaceEncoder, pieces: Pieces) -> Any:
    """One input alone, without any padding, as a user of transformers would run it."""
    arguments = {"input_ids": torch.tensor(pieces.ids).long()[None]}
    if reference.config.model_type in {"bert", "electra", "albert"} or getattr(reference.config, "type_vocab_size", 0):
        arguments["token_type_ids"] = torch.tensor(pieces.types).long()[None]
    if "choice" in encoder.outputs:
        arguments = {name: tensor[None] for name, tensor in arguments.items()}
    with torch.inference_mode():
        return reference(**arguments, output_hidden_states=True)


def _assert_parity(reference: Any, encoder: HuggingFaceEncoder, shown: list[Input], size: int) -> None:
    pieces = encoder.tokenise(shown)
    for start in range(0, len(pieces), size):
        some = pieces[start : start + size]
        seen, output = _watched(encoder, some)
        assert [layer.layer for layer in seen] == list(range(encoder.layers))
        for row, one in enumerate(some):
            expected = _expected(reference, encoder, one)
            length = len(one)
            for layer, attention in zip(seen, expected.attentions, strict=True):
                _assert_close(layer.attention[row, :, :length, :length], attention[0])
                assert float(layer.attention[row, :, :length, length:].abs().sum()) == 0
            for ours, theirs in zip(output.hidden, expected.hidden_states, strict=True):
                _assert_close(ours[row, :length], theirs[0])


def _assert_close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, atol=TOLERANCE, rtol=TOLERANCE)


@pytest.mark.parametrize("size", [1, 2, len(TEXTS)])
@pytest.mark.parametrize("name", FAMILIES)
def test_attention_and_hidden_states_are_those_of_transformers(name: str, size: int) -> None:
    _assert_parity(_reference(name), models.encoder(name), models.inputs(), size)


@pytest.mark.parametrize("name", FAMILIES)
def test_pairs_are_those_of_transformers(name: str) -> None:
    _assert_parity(_reference(name), models.encoder(name), models.inputs(PAIRS), len(PAIRS))


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_of_a_family_are_those_of_transformers(name: str) -> None:
    _assert_parity(_reference(name), models.encoder(name), models.inputs(), 4)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in {"mpnet", "deberta-v2"}])
def test_parity_whatever_implementation_the_model_was_made_with(name: str, implementation: str) -> None:
    made = models.model(name)
    made.set_attn_implementation(implementation)
    encoder = wrap(made, models.tokenizer(name), name)
    _assert_parity(_reference(name), encoder, models.inputs()[:2], 2)
    assert made.config._attn_implementation == implementation


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_logits_are_those_of_transformers(name: str, kind: str) -> None:
    encoder = models.encoder(name, kind)
    reference = _reference(name, kind)
    pieces = encoder.tokenise(models.inputs(PAIRS if kind == "ForMultipleChoice" else TEXTS))
    _, output = _watched(encoder, pieces)
    with torch.inference_mode():
        unwatched = encoder.run(models.batch(pieces))
    fields = {
        "mlm": "prediction_logits" if kind == "ForPreTraining" else "logits",
        "nsp": "seq_relationship_logits" if kind == "ForPreTraining" else "logits",
        "sop": "sop_logits",
        "answer_start": "start_logits",
        "answer_end": "end_logits",
    }
    assert set(output.logits) == encoder.outputs
    assert bool(encoder.outputs) == (kind != "Model")
    for row, one in enumerate(pieces):
        expected = _expected(reference, encoder, one)
        for head, scores in output.logits.items():
            theirs = getattr(expected, fields.get(head, "logits"))[0]
            by_piece = head in {"mlm", "lm", "token", "answer_start", "answer_end", "replaced"}
            cut = slice(len(one)) if by_piece else slice(None)
            _assert_close(scores[row][cut], theirs)
            _assert_close(unwatched.logits[head][row][cut], theirs)


@pytest.mark.parametrize("name", FAMILIES)
def test_unwatched_hidden_states_are_those_of_watched_passes(name: str) -> None:
    encoder = models.encoder(name)
    pieces = encoder.tokenise(models.inputs())
    _, watched = _watched(encoder, pieces)
    with torch.inference_mode():
        unwatched = encoder.run(models.batch(pieces), hidden=True)
    real = models.batch(pieces).mask.bool()
    for ours, theirs in zip(watched.hidden, unwatched.hidden, strict=True):
        _assert_close(ours[real], theirs[real])


@pytest.mark.parametrize("name", FAMILIES)
def test_the_tiny_models_attend_to_something(name: str) -> None:
    """Attention that is all but uniform would pass every comparison: the models here must not be like that."""
    encoder = models.encoder(name)
    seen, _ = _watched(encoder, encoder.tokenise(models.inputs(TEXTS[3:4])))
    for layer in seen:
        assert float(layer.attention.max(-1).values.mean()) > 3 / layer.attention.shape[-1]


def test_the_window_of_modernbert_is_seen() -> None:
    encoder = models.encoder("modernbert")
    seen, _ = _watched(encoder, encoder.tokenise(models.inputs(TEXTS[3:4])))
    widths = [int(((layer.attention[0, 0] > 0).sum(-1)).max()) for layer in seen]
    assert widths[0] == seen[0].attention.shape[-1]
    assert widths[1] == widths[2] == 7
