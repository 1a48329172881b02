"""A BERT classifier whose predictions depend on known heads, and examples for it: planted truth for ablation analyses.

Every example has one cue, which determines its class, and two echoes, which are about the same topic and together with
the cue say good as often as bad, whatever the class. A planted head attends from [CLS] to the cue of its kind and to
nothing else, and the classifier reads its output. Without that head all examples of its kind are predicted `bad`, which
is right for half of them; with uniform attention the sum of cue and echoes decides, which is right for half as well;
with its mean output all are again `bad`. All other heads attend to noise and write to dimensions that nothing reads;
`DEAD` writes nothing at all.

LayerNorm would let every head change the scale of all others. Here its epsilon is so large that it only centres, and
every feature is written with its negative, so that there is nothing to centre: head outputs simply add up.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.sentence import sentence_from_words
from bertology.encoder.huggingface import HuggingFaceEncoder, wrap
from bertology.results.shapes import Head

LAYERS, HEADS, SIZE = 3, 4, 8
WIDTH = HEADS * SIZE
PLANTED = Head(1, 2)
"""The only head that the predictions of `single_head` depend on; without it half of them are right."""
RANKED = (Head(2, 1), Head(0, 3), Head(1, 2), Head(2, 0))
"""The heads that the predictions of `ranked_heads` depend on, the most important first."""
EXAMPLE_COUNTS = (8, 4, 2, 1)
"""Of 15 examples, how many depend on each of `RANKED`.

Removing a head costs half the accuracy on its examples, whatever else has been removed, so that every pruning order has
known scores.
"""
DEAD = Head(0, 0)
"""A head whose output projection is zero."""
LABELS = ("bad", "good")

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CUES = (("cold", "warm"), ("poor", "rich"), ("weak", "strong"), ("slow", "fast"))
"""For each kind, the bad and the good cue."""
ECHOES = (("winter", "summer"), ("debt", "gold"), ("straw", "steel"), ("snail", "hare"))
FILLER = ("the", "of", "and", "to", "in", "was", "with", "by", "on", "not", "he", "this")

# Each feature of a hidden state has one dimension, and its negative WIDTH / 2 dimensions further.
IS_CUE, POLARITY, ANSWER, NOISE = range(4), range(4, 8), 8, range(9, 16)
ATTENTION_SCALE = 16.0
ANSWER_SCALE = 2.0
EPSILON = 1e6


def single_head() -> tuple[HuggingFaceEncoder, Corpus]:
    """A classifier that depends on `PLANTED` only, and 64 examples that it classifies without error."""
    return classifier((PLANTED,)), build_corpus((1,), 64)


def ranked_heads(count: int = 120) -> tuple[HuggingFaceEncoder, Corpus]:
    """A classifier that depends on `RANKED`, and a multiple of 60 examples in the proportions of `EXAMPLE_COUNTS`."""
    return classifier(RANKED), build_corpus(EXAMPLE_COUNTS, count)


def accuracy_without(removed: Sequence[Head]) -> float:
    """The accuracy of `ranked_heads` without these heads."""
    return (
        1
        - sum(weight for head, weight in zip(RANKED, EXAMPLE_COUNTS, strict=True) if head in removed)
        / sum(EXAMPLE_COUNTS)
        / 2
    )


def build_corpus(proportions: Sequence[int], count: int) -> Corpus:
    """Examples of each kind in these proportions; half of each are good, and half of these have good echoes."""
    rng = random.Random(0)
    kinds = [kind for kind, weight in enumerate(proportions) for _ in range(weight * count // sum(proportions))]
    return Corpus(tuple(_build_example(rng, kind, number) for number, kind in enumerate(kinds)), name="planted heads")


def _build_example(rng: random.Random, kind: int, number: int) -> Example:
    good, sum_is_good = number % 2, number // 2 % 2
    echoes = (good, 1 - good) if good == sum_is_good else (sum_is_good, sum_is_good)
    words = [CUES[kind][good], *(ECHOES[kind][echo] for echo in echoes), *rng.choices(FILLER, k=rng.randint(3, 6))]
    rng.shuffle(words)
    return Example((sentence_from_words(words),), label=LABELS[good], id=str(number))


def classifier(heads: Sequence[Head]) -> HuggingFaceEncoder:
    """A classifier in which each of these heads copies the cue of one kind, in order, to [CLS]."""
    tokenizer = _build_tokenizer()
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=16,
        max_position_embeddings=64,
        layer_norm_eps=EPSILON,
        id2label=dict(enumerate(LABELS)),
        label2id={label: index for index, label in enumerate(LABELS)},
        problem_type="single_label_classification",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = transformers.BertForSequenceClassification(config)
        with torch.no_grad():
            _set_weights(model, tokenizer, heads)
    return wrap(model, tokenizer, "planted heads")


def _set_weights(model: Any, tokenizer: Any, heads: Sequence[Head]) -> None:
    for weights in model.parameters():
        weights.zero_()
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.weight.fill_(EPSILON**0.5)
    embeddings = model.bert.embeddings
    for dimension in NOISE:
        _write(embeddings.word_embeddings.weight, dimension, torch.randn(len(tokenizer)))
        _write(embeddings.position_embeddings.weight, dimension, 0.3 * torch.randn(64))
    for words_by_kind, is_cue in ((CUES, 1.0), (ECHOES, 0.0)):
        for kind, words in enumerate(words_by_kind):
            for good, word in enumerate(words):
                row = embeddings.word_embeddings.weight[tokenizer.convert_tokens_to_ids(word)]
                _write(row, IS_CUE[kind], is_cue)
                _write(row, POLARITY[kind], 2.0 * good - 1)
    for layer in range(LAYERS):
        for head in range(HEADS):
            attention = model.bert.encoder.layer[layer].attention
            if Head(layer, head) in heads:
                _plant(attention.self, attention.output.dense, head, heads.index(Head(layer, head)))
            else:
                _add_noise(attention.self, attention.output.dense, head, silent=Head(layer, head) == DEAD)
    model.bert.pooler.dense.weight[0, ANSWER] = ANSWER_SCALE
    model.classifier.weight[:, 0] = torch.tensor([-1.0, 1.0])
    # Without an answer the prediction is always the same.
    model.classifier.bias[0] = 0.01


def _plant(attention: Any, dense: Any, head: int, kind: int) -> None:
    """Attend from every token to the cue of a kind, and write its polarity to the answer dimension."""
    first = head * SIZE
    attention.query.bias[first] = ATTENTION_SCALE * SIZE**0.5
    attention.key.weight[first, IS_CUE[kind]] = 1.0
    attention.value.weight[first, POLARITY[kind]] = 1.0
    _write(dense.weight[:, first], ANSWER, 1.0)


def _add_noise(attention: Any, dense: Any, head: int, *, silent: bool) -> None:
    """Attend by noise, and write as much as a planted head to dimensions that nothing reads."""
    rows = slice(head * SIZE, (head + 1) * SIZE)
    for projection in (attention.query, attention.key, attention.value):
        projection.weight[rows, NOISE.start : NOISE.stop] = 0.5 * torch.randn(SIZE, len(NOISE))
    if not silent:
        for dimension in NOISE:
            _write(dense.weight[:, rows].T, dimension, 0.3 * torch.randn(SIZE))


def _write(rows: torch.Tensor, dimension: int, value: torch.Tensor | float) -> None:
    """Write a feature and its negative."""
    rows[..., dimension] = value
    rows[..., dimension + WIDTH // 2] = -value


def _build_tokenizer() -> Any:
    words = [word for pair in (*CUES, *ECHOES) for word in pair]
    vocabulary = {word: index for index, word in enumerate((*SPECIAL, *words, *FILLER))}
    tokenizer: Any = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    special_tokens = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **special_tokens)
