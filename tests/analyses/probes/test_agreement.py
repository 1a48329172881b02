"""`probes/agreement`: verbs of treebanks and pairs, planted knowledge by rule, chance on noise, refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest
import torch

from bertology.analyses import registry
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus, of_sentences, read_text
from bertology.corpus.sentence import ROOT, from_text, sentence
from bertology.encoder.encoder import Batch, Encoder
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.measures.probes.agreeing_verbs import PLURAL, SINGULAR, agreeing_verbs, with_word
from bertology.results.shapes import Table

NAME = "probes/agreement"
PAIRS = "generated:minimal_pairs@3:240"


@pytest.fixture(scope="module")
def tiny() -> Encoder:
    return load("tiny")


def table(encoder: Encoder | Ruled, corpus: Corpus, **options: object) -> Table:
    subject = Subject(corpus, cast(Encoder, encoder), randomise=False)  # what stands in hands on all it does not change
    data = run(registry.get(NAME), subject, options).data
    assert isinstance(data, Table)
    return data


def treebank() -> Corpus:
    words = ["The", "keys", "to", "the", "cabinet", "are", "here", ";", "the", "dog", "sleeps", "."]
    plain = sentence(words)
    annotated = replace(
        plain,
        lemmas=("the", "key", "to", "the", "cabinet", "be", "here", ";", "the", "dog", "sleep", "."),
        pos=("DET", "NOUN", "ADP", "DET", "NOUN", "AUX", "ADV", "PUNCT", "DET", "NOUN", "VERB", "PUNCT"),
        xpos=("DT", "NNS", "IN", "DT", "NN", "VBP", "RB", ":", "DT", "NN", "VBZ", "."),
        features=(
            "_", "Number=Plur", "_", "_", "Number=Sing", "Number=Plur|Person=3|Tense=Pres|VerbForm=Fin", "_", "_", "_",
            "Number=Sing", "Number=Sing|Person=3|Tense=Pres|VerbForm=Fin", "_",
        ),
        heads=(1, 6, 4, 4, 1, 6, ROOT, 6, 9, 10, 6, 6),
        relations=(
            "det", "nsubj", "case", "det", "nmod", "cop", "root", "punct", "det", "nsubj", "parataxis", "punct",
        ),
    )  # fmt: skip
    return of_sentences([annotated])


def test_verbs_of_a_treebank_have_attractors_and_another_form() -> None:
    (verb,), left = agreeing_verbs(treebank())
    assert (verb.word, verb.number, verb.attractors) == (10, SINGULAR, 0)
    assert verb.wrong.words[10] == "sleep"
    assert left["no other form in the corpus"] == 1  # `is` occurs nowhere
    is_ = of_sentences([replace(from_text("is"), lemmas=("be",), xpos=("VBZ",), heads=(ROOT,), relations=("root",))])
    verbs, left = agreeing_verbs(Corpus(treebank().items + is_.items))
    assert [(verb.word, verb.number, verb.attractors) for verb in verbs] == [(5, PLURAL, 1), (10, SINGULAR, 0)]
    assert verbs[0].wrong.words[5] == "is" and verbs[0].nearest == SINGULAR and not left


def test_another_word_moves_the_offsets() -> None:
    changed = with_word(from_text("The dogs sleep, then eat."), 2, "sleeps")
    assert changed.text == "The dogs sleeps, then eat."
    assert [changed.text[a:b] for a, b in changed.offsets] == list(changed.words)


class Ruled:
    """An encoder whose state under the mask, and whose guess, is the number that a rule reads off the sentence."""

    def __init__(self, inner: Encoder, structural: bool, *, head: bool = True) -> None:
        self.inner, self.layers, self.width = inner, 1, 4
        self.outputs = frozenset({"mlm"} if head else ())
        self.mask_id = inner.mask_id
        self.known: dict[tuple[int, ...], tuple[int, int, int]] = {}
        corpus = corpus_named(PAIRS)
        for verb in agreeing_verbs(corpus)[0]:
            item = corpus[verb.item]
            right, wrong = self.inner.tokenise([item.inputs[0], verb.wrong])
            (place, *more), others = (np.flatnonzero(p.word == verb.word).tolist() for p in (right, wrong))
            if not more and len(others) == 1:
                number = verb.number if structural else verb.nearest
                forms = int(right.ids[place]), int(wrong.ids[others[0]])
                key = tuple(np.delete(right.ids, place).tolist())
                first, second = forms if number == verb.number else forms[::-1]
                self.known[key] = number, first, second

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def run(self, batch: Batch, *, hidden: bool = False) -> object:
        output = self.inner.run(batch)
        states = torch.zeros(*batch.ids.shape, self.width)
        scores = torch.zeros_like(output.logits["mlm"])
        for row, ids in enumerate(batch.ids.tolist()):
            place = ids.index(self.inner.mask_id)
            real = ids[: int(batch.mask[row].sum())]
            number, right, wrong = self.known[tuple(real[:place] + real[place + 1 :])]
            states[row, place, 1] = 2.0 * number - 1
            scores[row, place, right], scores[row, place, wrong] = 1, -1
        return replace(output, hidden=(torch.zeros_like(states), states), logits={"mlm": scores} if hidden else {})


@pytest.mark.parametrize("structural", [True, False])
def test_a_planted_rule_is_found(tiny: Encoder, structural: bool) -> None:
    found = table(Ruled(tiny, structural), corpus_named(PAIRS), undistracted=True)
    assert found.rows_named == ("masked LM", "layer 0", "layer 1")
    assert set(found.measures) == {"0 attractors", "1 attractor", "2 attractors", "3 attractors"}
    for name, estimates in found.measures.items():
        expected = 1.0 if structural or name == "0 attractors" else 0.0
        assert estimates.value[0] == estimates.value[2] == expected, name
        np.testing.assert_array_equal(found.baselines["nearest noun"][name].value, float(name == "0 attractors"))
    assert "trained on" in found.notes["masked LM"]


def test_random_weights_do_not_know_the_number(tiny: Encoder) -> None:
    found = table(tiny, corpus_named(PAIRS))
    head = np.concatenate([estimates.value[:1] * estimates.n[:1] for estimates in found.measures.values()]).sum()
    verbs = sum(int(estimates.n[0]) for estimates in found.measures.values())
    assert 0.35 < head / verbs < 0.65
    assert all((estimates.n[1:] < estimates.n[0]).all() for estimates in found.measures.values())  # probes: test part


def test_the_released_code_looks_left_of_the_mask(tiny: Encoder) -> None:
    found = table(Ruled(tiny, True), corpus_named(PAIRS), legacy=True)
    assert found.measures["0 attractors"].value[0] == 1  # the head is asked about the mask all the same
    assert found.measures["0 attractors"].value[2] < 0.8  # nothing is planted there


def test_a_bare_encoder_is_probed_only(tiny: Encoder) -> None:
    bare = Ruled(tiny, True, head=False)
    assert table(bare, corpus_named(PAIRS)).rows_named == ("layer 0", "layer 1")


def test_refusals_say_what_is_missing(tiny: Encoder) -> None:
    with pytest.raises(Refusal, match="no verb that agrees"):
        table(tiny, read_text("Dogs sleep."))
    with pytest.raises(Refusal, match="too few verbs"):
        table(tiny, corpus_named(PAIRS)[:3])
    no_mask = Ruled(tiny, True)
    no_mask.mask_id = None
    with pytest.raises(Refusal, match="no mask token"):
        table(no_mask, corpus_named(PAIRS))
