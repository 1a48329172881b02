"""`probes/minimal_pairs`: pseudo-log-likelihoods against a loop, planted preferences, the rows of the table."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest
import torch

from bertology.analyses import registry
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus, Item, read_text
from bertology.corpus.sentence import from_text
from bertology.encoder.encoder import Batch, Encoder
from bertology.encoder.load import load
from bertology.encoder.pieces import Pieces, Special
from bertology.errors import Refusal
from bertology.measures.probes import masked_scores
from bertology.results.shapes import Table

NAME = "probes/minimal_pairs"


@pytest.fixture(scope="module")
def tiny() -> Encoder:
    return load("tiny")


def table(encoder: Encoder | Wordly, corpus: Corpus, **options: object) -> Table:
    subject = Subject(corpus, cast(Encoder, encoder), randomise=False)  # what stands in hands on all it does not change
    data = run(registry.get(NAME), subject, options).data
    assert isinstance(data, Table)
    return data


def by_loop(encoder: Encoder, pieces: Pieces, masking: str) -> list[float]:
    """One forward pass a piece, no batches: the definition."""
    found: list[float] = []
    for place in range(len(pieces)):
        if pieces.special[place] != Special.NONE:
            continue
        ids = torch.tensor(pieces.ids.astype(np.int64))[None]
        truth = int(ids[0, place])
        for other in range(len(pieces)):
            same = pieces.word[other] == pieces.word[place]
            hidden = {"piece": other == place, "rest of word": same and other >= place, "word": same}[masking]
            if hidden:
                ids[0, other] = encoder.mask_id or 0
        types = torch.tensor(pieces.types.astype(np.int64))[None]
        with torch.no_grad():
            scores = encoder.run(Batch(ids, types, torch.ones_like(ids))).logits["mlm"][0, place]
        found.append(float(scores.log_softmax(-1)[truth]))
    return found


@pytest.mark.parametrize("masking", ["piece", "rest of word", "word"])
def test_the_scores_are_those_of_one_pass_a_piece(tiny: Encoder, masking: masked_scores.Masking) -> None:
    corpus = read_text("An unbelievable chrysanthemum withered .", "Yes", "Cats , dogs and hippopotamuses")
    pieces = tiny.tokenise([item.inputs[0] for item in corpus])
    assert any(one.split for one in pieces)
    asked = [question for one in pieces for question in masked_scores.questions(one, masking)]
    expected = [score for one in pieces for score in by_loop(tiny, one, masking)]
    np.testing.assert_allclose(masked_scores.log_probabilities(tiny, asked), expected, atol=1e-5)


def _total(scores: torch.Tensor) -> float:
    return float(scores.sum(0))


def test_agrees_with_minicons_where_it_is_installed(tiny: Encoder) -> None:
    scorer = pytest.importorskip("minicons.scorer")
    from bertology.encoder.huggingface import HuggingFaceEncoder

    assert isinstance(tiny, HuggingFaceEncoder)
    texts = ["The cat sat on the mat .", "An unbelievable chrysanthemum withered ."]
    theirs = scorer.MaskedLMScorer(tiny.model, "cpu", tokenizer=tiny.tokenizer)
    pieces = tiny.tokenise([item.inputs[0] for item in read_text(*texts)])
    metrics: dict[masked_scores.Masking, str] = {"piece": "original", "rest of word": "within_word_l2r"}
    for masking, metric in metrics.items():
        ours = [
            masked_scores.log_probabilities(tiny, list(masked_scores.questions(one, masking))).sum() for one in pieces
        ]
        scores = theirs.sequence_score(texts, reduction=_total, PLL_metric=metric)
        np.testing.assert_allclose(ours, scores, atol=1e-4)


class Wordly:
    """An encoder whose masked-language-model head always expects one of the words it likes."""

    def __init__(self, inner: Encoder, liked: dict[int, float]) -> None:
        self.inner, self.liked, self.outputs = inner, liked, inner.outputs

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def run(self, batch: Batch, **given: object) -> object:
        output = self.inner.run(batch)
        scores = torch.zeros_like(output.logits["mlm"])
        for piece, score in self.liked.items():
            scores[..., piece] = score
        return replace(output, logits={"mlm": scores})


def pairs(*texts: tuple[str, str, str]) -> Corpus:
    items = [Item((from_text(good), from_text(bad)), "minimal_pair", source=source) for good, bad, source in texts]
    return Corpus(tuple(items), name="pairs")


def test_a_planted_preference_is_found(tiny: Encoder) -> None:
    good, bad = (tiny.tokenise([read_text(word)[0].inputs[0]])[0] for word in ("sleep", "sleeps"))
    assert tuple(good.ids.tolist()) != tuple(bad.ids.tolist())
    corpus = pairs(
        ("the dogs sleep", "the dogs sleeps", "f/agreement/plural"),
        ("they sleep", "they sleeps", "f/agreement/plural"),
        ("the dog sleeps", "the dog sleep", "f/agreement/singular"),
        ("sleep now", "sleeps now", "f/other/order"),
    )
    liking = {int(piece): 5.0 for piece in good.ids[1:-1]} | {int(p): -5.0 for p in set(bad.ids) - set(good.ids)}
    found = table(Wordly(tiny, liking), corpus)
    values = dict(zip(found.rows_named, found.measures["accuracy"].value.tolist(), strict=True))
    assert values == {
        "all": pytest.approx(2 / 3),  # over paradigms: 1, 0 and 1, whatever their sizes
        "agreement": 0.5,
        "other": 1.0,
        "agreement/plural": 1.0,
        "agreement/singular": 0.0,
        "other/order": 1.0,
    }
    assert found.measures["accuracy"].n.tolist() == [4, 3, 1, 2, 1, 1]


def test_the_mean_does_not_favour_the_shorter_sentence(tiny: Encoder) -> None:
    corpus = pairs(("the dog that sleeps sleeps", "the dog", "a"), ("one two three", "one two", "a"))
    found = table(Wordly(tiny, {}), corpus)  # every piece equally likely
    assert found.measures["accuracy"].value[0] == 0
    assert found.baselines["fewer pieces"]["accuracy"].value[0] == 0
    scores = np.array([[-1.0, -1.0], [-2.0, -3.0], [np.nan, 0.0]])
    from bertology.analyses.probes.minimal_pairs import _preferred  # pyright: ignore[reportPrivateUsage]

    np.testing.assert_array_equal(_preferred(scores), [0, 1, np.nan])  # a tie is wrong


def test_random_weights_are_at_chance(tiny: Encoder) -> None:
    found = table(tiny, corpus_named("generated:minimal_pairs@1:200"))
    everything = found.measures["accuracy"][0]
    assert everything.low < 0.6 and everything.high > 0.4
    assert everything.n == 200


def test_a_model_without_the_head_is_refused() -> None:
    encoder = load("tiny")
    bare = Wordly(encoder, {})
    bare.outputs = frozenset({"nsp"})
    with pytest.raises(Refusal, match="masked-language-model head"):
        table(bare, corpus_named("generated:minimal_pairs@1:5"))


def test_a_corpus_without_pairs_is_refused(tiny: Encoder) -> None:
    with pytest.raises(Refusal, match="minimal pairs"):
        table(tiny, read_text("No pair."))
