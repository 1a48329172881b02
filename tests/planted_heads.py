"""A BERT whose answers rest on heads that are known, and items for it: what ablation, importance and pruning must find.

Every item has one cue, which its class is read off, and two echoes, which are about the same thing and together with
the cue say good as often as bad, whatever the class. A planted head looks from [CLS] at the cue of its own kind and at
nothing else; the classifier reads what it brought. Without that head the items of its kind are all called `bad`, which
is right for half of them; with uniform attention the sum of cue and echoes decides, right for half as well; with its
mean output they are again all `bad`. All other heads attend in ways of their own and write much, where nothing reads
it; `DEAD` writes nothing at all.

LayerNorm would let every writer change the scale of all others. Here its epsilon is so large that it only centres, and
what is written has its negative beside it, so that there is nothing to centre: what heads write adds up and no more.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import sentence
from bertology.encoder.huggingface import HuggingFaceEncoder, wrap
from bertology.results.shapes import Head

LAYERS, HEADS, SIZE = 3, 4, 8
WIDTH = HEADS * SIZE
PLANTED = Head(1, 2)
"""The one head that the answers of `one_head` rest on; removing it leaves half of them right."""
RANKED = (Head(2, 1), Head(0, 3), Head(1, 2), Head(2, 0))
"""The heads that the answers of `ranked_heads` rest on, the most important first."""
SHARES = (8, 4, 2, 1)
"""How many items of 15 rest on each of them: removing a head costs half of its share of the accuracy, whatever else
has been removed, so that every order of removing has known scores."""
DEAD = Head(0, 0)
"""A head whose output is multiplied by zero in the output projection of its layer."""
LABELS = ("bad", "good")

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CUES = (("cold", "warm"), ("poor", "rich"), ("weak", "strong"), ("slow", "fast"))
"""Of each kind the word for bad and the word for good."""
ECHOES = (("winter", "summer"), ("debt", "gold"), ("straw", "steel"), ("snail", "hare"))
FILLER = ("the", "of", "and", "to", "in", "was", "with", "by", "on", "not", "he", "this")

# Each feature of the hidden state lies at one place and with its sign turned at another, WIDTH / 2 further on.
IS_CUE, POLARITY, ANSWER, NOISE = range(4), range(4, 8), 8, range(9, 16)
SHARPNESS = 16.0
SURENESS = 2.0
EPSILON = 1e6


def one_head() -> tuple[HuggingFaceEncoder, Corpus]:
    """A classifier whose answer rests on `PLANTED` alone, and 64 items that it answers without a fault."""
    return classifier((PLANTED,)), items((1,), 64)


def ranked_heads(count: int = 120) -> tuple[HuggingFaceEncoder, Corpus]:
    """A classifier whose answers rest on `RANKED`, and items, `SHARES` of them on each; `count` a multiple of 60."""
    return classifier(RANKED), items(SHARES, count)


def accuracy_without(removed: Sequence[Head]) -> float:
    """The accuracy of `ranked_heads` on its items once these heads are removed."""
    return 1 - sum(share for head, share in zip(RANKED, SHARES, strict=True) if head in removed) / sum(SHARES) / 2


def items(shares: Sequence[int], count: int) -> Corpus:
    """Items of each kind in these shares, half of each good, and of these half with echoes that say good."""
    draw = random.Random(0)
    kinds = [kind for kind, share in enumerate(shares) for _ in range(share * count // sum(shares))]
    return Corpus(tuple(_item(draw, kind, number) for number, kind in enumerate(kinds)), name="planted heads")


def _item(draw: random.Random, kind: int, number: int) -> Item:
    good, sum_is_good = number % 2, number // 2 % 2
    echoes = (good, 1 - good) if good == sum_is_good else (sum_is_good, sum_is_good)
    words = [CUES[kind][good], *(ECHOES[kind][echo] for echo in echoes), *draw.choices(FILLER, k=draw.randint(3, 6))]
    draw.shuffle(words)
    return Item((sentence(words),), label=LABELS[good], id=str(number))


def classifier(heads: Sequence[Head]) -> HuggingFaceEncoder:
    """A classifier in which each of these heads brings the cue of one kind to [CLS], in their order."""
    tokenizer = _tokenizer()
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=16,
        max_position_embeddings=64,
        layer_norm_eps=EPSILON,
        id2label=dict(enumerate(LABELS)),
        label2id={label: place for place, label in enumerate(LABELS)},
        problem_type="single_label_classification",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = transformers.BertForSequenceClassification(config)
        with torch.no_grad():
            _write(model, tokenizer, heads)
    return wrap(model, tokenizer, "planted heads")


def _write(model: Any, tokenizer: Any, heads: Sequence[Head]) -> None:
    for weights in model.parameters():
        weights.zero_()
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.weight.fill_(EPSILON**0.5)
    embeddings = model.bert.embeddings
    for place in NOISE:
        _put(embeddings.word_embeddings.weight, place, torch.randn(len(tokenizer)))
        _put(embeddings.position_embeddings.weight, place, 0.3 * torch.randn(64))
    for words, is_cue in ((CUES, 1.0), (ECHOES, 0.0)):
        for kind, some in enumerate(words):
            for good, word in enumerate(some):
                row = embeddings.word_embeddings.weight[tokenizer.convert_tokens_to_ids(word)]
                _put(row, IS_CUE[kind], is_cue)
                _put(row, POLARITY[kind], 2.0 * good - 1)
    for layer in range(LAYERS):
        for head in range(HEADS):
            part = model.bert.encoder.layer[layer].attention
            self_attention, dense = part.self, part.output.dense
            if Head(layer, head) in heads:
                _plant(self_attention, dense, head, heads.index(Head(layer, head)))
            else:
                _scatter(self_attention, dense, head, silent=Head(layer, head) == DEAD)
    model.bert.pooler.dense.weight[0, ANSWER] = SURENESS
    model.classifier.weight[:, 0] = torch.tensor([-1.0, 1.0])
    # Where nothing is brought the answer is always the same.
    model.classifier.bias[0] = 0.01


def _plant(attention: Any, dense: Any, head: int, kind: int) -> None:
    """Look at the cue of a kind, from everywhere, and write its polarity where the answer is read."""
    own = head * SIZE
    attention.query.bias[own] = SHARPNESS * SIZE**0.5
    attention.key.weight[own, IS_CUE[kind]] = 1.0
    attention.value.weight[own, POLARITY[kind]] = 1.0
    _put(dense.weight[:, own], ANSWER, 1.0)


def _scatter(attention: Any, dense: Any, head: int, *, silent: bool) -> None:
    """Attend by the noise, and write as much as a planted head does, where nothing reads it."""
    own = slice(head * SIZE, (head + 1) * SIZE)
    for projection in (attention.query, attention.key, attention.value):
        projection.weight[own, NOISE.start : NOISE.stop] = 0.5 * torch.randn(SIZE, len(NOISE))
    if not silent:
        for place in NOISE:
            _put(dense.weight[:, own].T, place, 0.3 * torch.randn(SIZE))


def _put(rows: torch.Tensor, place: int, value: torch.Tensor | float) -> None:
    """Write a feature, and its negative beside it."""
    rows[..., place] = value
    rows[..., place + WIDTH // 2] = -value


def _tokenizer() -> Any:
    words = [word for some in (*CUES, *ECHOES) for word in some]
    vocabulary = {word: place for place, word in enumerate((*SPECIAL, *words, *FILLER))}
    tokenizer: Any = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    roles = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **roles)
