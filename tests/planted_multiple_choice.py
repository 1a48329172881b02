"""Multiple-choice models with known predictions: the gold option, the longest option, or an arbitrary one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import ModelInputs, ModelOutput, TaskEncoder
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.layer_variants import LayerVariant
from bertology.encoder.load import load
from bertology.encoder.task_heads import add_task_head

OptionScore = Callable[[bool, int, int], float]
"""The score of an option: whether it is the gold option, its number of words, and an arbitrary number."""


def gold_option(is_gold: bool, n_words: int, arbitrary: int) -> float:
    """Prefers the gold option."""
    return float(is_gold)


def longest_option(is_gold: bool, n_words: int, arbitrary: int) -> float:
    """Prefers the option with the most words, and among equally long ones the gold option."""
    return 10.0 * n_words + is_gold


def arbitrary_option(is_gold: bool, n_words: int, arbitrary: int) -> float:
    """Prefers an arbitrary option."""
    return float(arbitrary)


@dataclass(frozen=True, eq=False)
class MultipleChoiceModel(HuggingFaceEncoder):
    """Scores options by `option_score`; `gold_inputs` are the tokens of each passage, question and gold option."""

    option_score: OptionScore = gold_option
    gold_inputs: frozenset[tuple[int, ...]] = frozenset()
    starts_word: tuple[bool, ...] = ()
    """By token id, whether the token starts a word."""

    @property
    def max_length(self) -> int:
        """No limit."""
        return 10_000

    def forward(self, batch: ModelInputs, **options: Any) -> ModelOutput:
        """The score of each row, which ends with an option."""
        rows = zip(batch.input_ids, batch.token_type_ids, batch.attention_mask, strict=True)
        scores = [
            self._score(ids[mask > 0].tolist(), ids[(mask > 0) & (types == 1)].tolist()) for ids, types, mask in rows
        ]
        return ModelOutput((), {"choice": torch.tensor(scores)[:, None]})

    def _score(self, tokens: list[int], option: list[int]) -> float:
        n_words = sum(self.starts_word[token] for token in option)
        return self.option_score(tuple(tokens) in self.gold_inputs, n_words, hash(tuple(tokens)) % 1000)


def multiple_choice_model(corpus: Corpus, option_score: OptionScore) -> MultipleChoiceModel:
    """A model that scores the options of a corpus by `option_score`."""
    base = load("tiny")
    assert isinstance(base, TaskEncoder)
    encoder = add_task_head(base, "choice", (), variant=LayerVariant(), seed=0)
    gold_texts = [example.text_inputs[int(example.label or 0)] for example in corpus]
    vocabulary: Mapping[str, int] = encoder.hf_tokenizer.get_vocab()
    return MultipleChoiceModel(
        "multiple choice",
        encoder.model,
        encoder.hf_tokenizer,
        encoder.tokeniser,
        option_score=option_score,
        gold_inputs=frozenset(tuple(tokens.ids.tolist()) for tokens in encoder.tokenise(gold_texts)),
        starts_word=tuple(not token.startswith("##") for token in sorted(vocabulary, key=lambda t: vocabulary[t])),
    )
