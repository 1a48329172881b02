"""Attention as transformers returns it gives the recording that the model itself gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tiny_models
from bertology.corpus.read import as_corpus
from bertology.corpus.sentence import Sentence, sentence_from_words
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.recording.recorder import record
from bertology.recording.recording import Recording

TEXTS = ("the cat sat on the mat", "dogs ran")


def _outputs(family: str, texts: tuple[str, ...]) -> tuple[Any, Any, Any]:
    """The tokeniser, its encoding with padding, and the output of the model."""
    tokenizer = tiny_models.hf_tokenizer(family)
    encoding = tokenizer(list(texts), padding=True, return_tensors="pt")
    model = tiny_models.model(family)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        return tokenizer, encoding, model(**encoding, output_attentions=True, output_hidden_states=True)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_outputs_of_transformers_equal_the_recording_of_the_model(family: str) -> None:
    tokenizer, encoding, output = _outputs(family, TEXTS)
    corpus = as_corpus(TEXTS)
    imported = Recording.from_attentions(
        output.attentions,
        encoding["input_ids"],
        tokenizer=tokenizer,
        attention_mask=encoding["attention_mask"],
        hidden_states=output.hidden_states,
        words=[example.segments[0] for example in corpus],
    )
    recorded = record(tiny_models.encoder(family), corpus, ["attention", "hidden"])
    assert imported.counts["padding tokens removed"] > 0
    for index in range(len(TEXTS)):
        ours, theirs = recorded.inputs[index], imported.inputs[index]
        assert ours.text == theirs.text and ours.tokens.tokens == theirs.tokens.tokens
        np.testing.assert_array_equal(ours.tokens.word_ids, theirs.tokens.word_ids)
        np.testing.assert_array_equal(ours.tokens.special_kinds, theirs.tokens.special_kinds)
        for site in ("attention", "hidden"):
            np.testing.assert_allclose(recorded[site][index], imported[site][index], atol=1e-5)


def test_several_batches_are_one_recording() -> None:
    tokenizer, both, output = _outputs("bert", TEXTS)
    parts = [_outputs("bert", (text,)) for text in TEXTS]
    together = Recording.from_attentions(
        output.attentions, both["input_ids"], tokenizer=tokenizer, attention_mask=both["attention_mask"]
    )
    apart = Recording.from_attentions(
        [part.attentions for _, _, part in parts],
        [encoding["input_ids"] for _, encoding, _ in parts],
        tokenizer=tokenizer,
        hidden_states=[part.hidden_states for _, _, part in parts],
    )
    assert [recorded.tokens.tokens for recorded in together.inputs] == [r.tokens.tokens for r in apart.inputs]
    for one, other in zip(together["attention"], apart["attention"], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    assert "hidden" in apart.sites


def _uniform(n: int, *, batch: bool = True) -> list[Any]:
    layer = torch.full((3, n, n), 1 / n)
    return [layer[None] if batch else layer] * 2


@pytest.mark.parametrize("batch", [True, False])
def test_the_arguments_of_bertviz_are_read_with_words_and_annotations(batch: bool) -> None:
    tokens = ["<|endoftext|>", "The", " strawb", "erries", " are", " here", "."]
    plain = sentence_from_words(["The", "strawberries", "are", "here", "."])
    parsed = Sentence(plain.words, plain.text, plain.offsets, pos=("DET", "NOUN", "AUX", "ADV", "PUNCT"))
    recording = Recording.from_attentions(_uniform(7, batch=batch), tokens, words=[parsed], name="gpt2")
    assert recording.inputs[0].tokens.word_ids.tolist() == [-1, 0, 1, 1, 2, 3, 4]
    assert recording.corpus.annotations["pos"] == 1 and recording.encoder.name == "gpt2"
    joined = Recording.from_attentions(_uniform(7, batch=batch), tokens)
    assert joined.inputs[0].text.words == ("The", "strawberries", "are", "here.")


class OddTokenizer:
    """A tokeniser whose special tokens have unusual names."""

    @property
    def special_tokens_map(self) -> dict[str, Any]:
        return {"bos_token": "<|start|>", "eos_token": "<|stop|>", "extra": ["<|role|>"], "unk_token": "<?>"}

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        return [["<|start|>", "<|role|>", "the", "cat", "<|stop|>"][id_] for id_ in ids]


def test_special_tokens_are_those_of_the_tokenizer() -> None:
    recording = Recording.from_attentions(_uniform(5), [[0, 1, 2, 3, 4]], tokenizer=OddTokenizer())
    kinds = [SpecialToken.CLS, SpecialToken.OTHER, SpecialToken.NONE, SpecialToken.NONE, SpecialToken.SEP]
    assert recording.inputs[0].tokens.special_kinds.tolist() == kinds
    assert recording.inputs[0].text.words == ("the", "cat")


TOKENS = ["[CLS]", "a", "b", "[SEP]"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"attentions": (None, None), "tokens": TOKENS}, "eager"),
        ({"attentions": (), "tokens": TOKENS}, "no attention"),
        ({"attentions": _uniform(4), "tokens": [[1, 2, 3, 4]]}, "without a tokeniser"),
        ({"attentions": _uniform(4), "tokens": [TOKENS, TOKENS]}, "of 1 inputs, and there are tokens of 2"),
        ({"attentions": _uniform(4), "tokens": TOKENS, "attention_mask": [[1, 1, 1]]}, "mask has 3 positions"),
        ({"attentions": _uniform(4), "tokens": TOKENS, "attention_mask": [[1, 1, 1, 0]]}, "do not sum to 1"),
        ({"attentions": [*_uniform(4), *_uniform(5)], "tokens": TOKENS}, "the same shape per layer"),
        ({"attentions": [_uniform(4), _uniform(4)], "tokens": [TOKENS]}, "2 batches of attention and 1 of tokens"),
        ({"attentions": _uniform(5), "tokens": TOKENS}, "one position per token"),
    ],
)
def test_what_does_not_belong_together_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(Refusal, match=message):
        Recording.from_attentions(**arguments)
