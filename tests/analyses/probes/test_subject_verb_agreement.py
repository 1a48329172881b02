"""`probes/subject_verb_agreement`: verbs of treebanks and pairs, planted rules, chance on noise, refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest
import torch

from bertology.analyses import registry
from bertology.analyses.probes.subject_verb_agreement.verbs import PLURAL, SINGULAR, agreement_verbs, replace_word
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.corpus import Corpus, corpus_from_sentences
from bertology.corpus.example import Example, TextInput
from bertology.corpus.read import as_corpus, load_corpus
from bertology.corpus.sentence import ROOT, sentence_from_text, sentence_from_words
from bertology.encoder.encoder import Encoder, ModelInputs, ModelOutput
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.results.shapes import Table

NAME = "probes/subject_verb_agreement"
PAIRS = "generated:minimal_pairs@3:240"
NO_ATTRACTORS = "accuracy (0 attractors)"


@pytest.fixture(scope="module")
def tiny() -> Encoder:
    return load("tiny")


def table(encoder: Encoder | RuleEncoder, corpus: Corpus, **options: object) -> Table:
    # The stand-in forwards everything it does not change to the encoder.
    inputs = RunInputs(corpus, cast(Encoder, encoder), random_baseline=False)
    data = run_analysis(registry.get(NAME), inputs, options).data
    assert isinstance(data, Table)
    return data


def treebank() -> Corpus:
    words = ["The", "keys", "to", "the", "cabinet", "are", "here", ";", "the", "dog", "sleeps", "."]
    sentence = replace(
        sentence_from_words(words),
        lemmas=("the", "key", "to", "the", "cabinet", "be", "here", ";", "the", "dog", "sleep", "."),
        pos=("DET", "NOUN", "ADP", "DET", "NOUN", "AUX", "ADV", "PUNCT", "DET", "NOUN", "VERB", "PUNCT"),
        xpos=("DT", "NNS", "IN", "DT", "NN", "VBP", "RB", ":", "DT", "NN", "VBZ", "."),
        morphology=(
            "_", "Number=Plur", "_", "_", "Number=Sing", "Number=Plur|Person=3|Tense=Pres|VerbForm=Fin", "_", "_", "_",
            "Number=Sing", "Number=Sing|Person=3|Tense=Pres|VerbForm=Fin", "_",
        ),
        governors=(1, 6, 4, 4, 1, 6, ROOT, 6, 9, 10, 6, 6),
        relations=(
            "det", "nsubj", "case", "det", "nmod", "cop", "root", "punct", "det", "nsubj", "parataxis", "punct",
        ),
    )  # fmt: skip
    return corpus_from_sentences([sentence])


def test_verbs_of_a_treebank_have_attractors_and_another_form() -> None:
    (verb,), skipped = agreement_verbs(treebank())
    assert (verb.word_index, verb.number, verb.n_attractors) == (10, SINGULAR, 0)
    assert verb.ungrammatical_input.words[10] == "sleep"
    assert skipped["no other form in the corpus"] == 1  # `is` does not occur
    singular_be = replace(
        sentence_from_text("is"), lemmas=("be",), xpos=("VBZ",), governors=(ROOT,), relations=("root",)
    )
    corpus = Corpus((*treebank().examples, *corpus_from_sentences([singular_be]).examples))
    verbs, skipped = agreement_verbs(corpus)
    assert [(verb.word_index, verb.number, verb.n_attractors) for verb in verbs] == [(5, PLURAL, 1), (10, SINGULAR, 0)]
    assert verbs[0].ungrammatical_input.words[5] == "is" and verbs[0].nearest_noun_number == SINGULAR and not skipped


def test_replacing_a_word_shifts_offsets() -> None:
    sentence = replace_word(sentence_from_text("The dogs sleep, then eat."), 2, "sleeps")
    assert sentence.text == "The dogs sleeps, then eat."
    assert [sentence.text[start:end] for start, end in sentence.offsets] == list(sentence.words)


class RuleEncoder:
    """An encoder whose hidden state at the mask, and whose prediction, is the number given by a rule.

    The structural rule is the number of the subject, the other that of the nearest noun.
    """

    def __init__(self, inner: Encoder, structural: bool, *, has_mlm: bool = True) -> None:
        self.inner, self.layers, self.width = inner, 1, 4
        self.task_heads = frozenset({"mlm"} if has_mlm else ())
        self.mask_token_id = inner.mask_token_id
        self.predictions: dict[tuple[int, ...], tuple[int, int, int]] = {}
        corpus = load_corpus(PAIRS)
        for verb in agreement_verbs(corpus)[0]:
            text_input = corpus[verb.example_index].text_inputs[0]
            right, wrong = self.inner.tokenise([text_input, verb.ungrammatical_input])
            (position, *more), wrong_positions = (
                np.flatnonzero(tokens.word_ids == verb.word_index).tolist() for tokens in (right, wrong)
            )
            if not more and len(wrong_positions) == 1:
                number = verb.number if structural else verb.nearest_noun_number
                forms = int(right.ids[position]), int(wrong.ids[wrong_positions[0]])
                context = tuple(np.delete(right.ids, position).tolist())
                preferred, other = forms if number == verb.number else forms[::-1]
                self.predictions[context] = number, preferred, other

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def forward(self, batch: ModelInputs, *, hidden: bool = False) -> ModelOutput:
        output = self.inner.forward(batch)
        states = torch.zeros(*batch.input_ids.shape, self.width)
        logits = torch.zeros_like(output.logits["mlm"])
        for row, ids in enumerate(batch.input_ids.tolist()):
            position = ids.index(self.inner.mask_token_id)
            unpadded = ids[: int(batch.attention_mask[row].sum())]
            context = tuple(unpadded[:position] + unpadded[position + 1 :])
            number, preferred, other = self.predictions[context]
            states[row, position, 1] = 2.0 * number - 1
            logits[row, position, preferred], logits[row, position, other] = 1, -1
        hidden_states = (torch.zeros_like(states), states)
        return replace(output, hidden_states=hidden_states, logits={"mlm": logits} if hidden else {})


@pytest.mark.parametrize("structural", [True, False])
def test_a_planted_rule_is_found(tiny: Encoder, structural: bool) -> None:
    data = table(RuleEncoder(tiny, structural), load_corpus(PAIRS), train_without_attractors=True)
    assert data.row_names == ("masked LM", "layer 0", "layer 1")
    assert data.attributes["layer"] == (None, 0, 1)
    assert set(data.measures) == {
        f"accuracy ({count})" for count in ("0 attractors", "1 attractor", "2 attractors", "3 attractors")
    }
    for name, estimates in data.measures.items():
        expected = 1.0 if structural or name == NO_ATTRACTORS else 0.0
        assert estimates.value[0] == estimates.value[2] == expected, name
        np.testing.assert_array_equal(data.baselines["nearest noun"][name].value, float(name == NO_ATTRACTORS))
    assert data.sample["training verbs"] + data.sample["test verbs"] < data.sample["verbs"]


def test_an_untrained_model_does_not_know_the_number(tiny: Encoder) -> None:
    measures = table(tiny, load_corpus(PAIRS)).measures.values()
    n_correct = sum(float(estimates.value[0] * estimates.n[0]) for estimates in measures)
    n_verbs = sum(int(estimates.n[0]) for estimates in measures)
    assert 0.35 < n_correct / n_verbs < 0.65
    assert all((estimates.n[1:] < estimates.n[0]).all() for estimates in measures)  # probes: test verbs only


def test_the_released_code_probes_the_position_left_of_the_mask(tiny: Encoder) -> None:
    data = table(RuleEncoder(tiny, True), load_corpus(PAIRS), legacy=True)
    assert data.measures[NO_ATTRACTORS].value[0] == 1  # the task head still predicts the mask
    assert data.measures[NO_ATTRACTORS].value[2] < 0.8  # nothing is planted at the probed position


def test_a_model_without_a_task_head_is_only_probed(tiny: Encoder) -> None:
    encoder = RuleEncoder(tiny, True, has_mlm=False)
    assert table(encoder, load_corpus(PAIRS)).row_names == ("layer 0", "layer 1")


def test_refusals_say_what_is_missing(tiny: Encoder) -> None:
    with pytest.raises(Refusal, match="no verb that agrees"):
        table(tiny, as_corpus(["Dogs sleep."]))
    with pytest.raises(Refusal, match="too few verbs"):
        table(tiny, load_corpus(PAIRS)[:3])
    without_mask = RuleEncoder(tiny, True)
    without_mask.mask_token_id = None
    with pytest.raises(Refusal, match="no mask token"):
        table(without_mask, load_corpus(PAIRS))


def blimp_pair(good: str, bad: str, paradigm: str) -> Example:
    segments = (sentence_from_text(good), sentence_from_text(bad))
    return Example(segments, "minimal_pair", source=f"morphology/subject_verb_agreement/{paradigm}")


def test_verbs_of_blimp_have_number_and_attractors() -> None:
    one, two = "regular_plural_subject_verb_agreement_1", "regular_plural_subject_verb_agreement_2"
    clause = "distractor_agreement_relative_clause"
    pairs = [
        blimp_pair("Paula sees Robert.", "Paula see Robert.", one),
        blimp_pair("Some dogs haven't slept.", "Some dogs hasn't slept.", one),
        blimp_pair("Boys that disturb Ann suffer.", "Boys that disturb Ann suffers.", clause),
        blimp_pair("The cats pass.", "The cats passes.", one),
        blimp_pair("The dogs sleep.", "The dog sleep.", two),
        Example((sentence_from_text("A dog."), sentence_from_text("A dogs.")), "minimal_pair", source="x/y/z"),
    ]
    verbs, skipped = agreement_verbs(Corpus(tuple(pairs)))
    facts = [(verb.example_index, verb.word_index, verb.number, verb.n_attractors) for verb in verbs]
    assert facts == [(0, 1, SINGULAR, 0), (1, 2, PLURAL, 0), (2, 4, PLURAL, 1), (3, 2, PLURAL, 0)]
    assert [verb.nearest_noun_number for verb in verbs] == [SINGULAR, PLURAL, SINGULAR, PLURAL]
    assert skipped == {"pairs that differ in the subject": 1}


def test_blimp_pairs_are_analysed_and_contractions_are_not_skipped(tiny: Encoder) -> None:
    paradigm = "regular_plural_subject_verb_agreement_1"
    pairs = [blimp_pair("The dog is here.", "The dog are here.", paradigm)] * 4
    pairs += [
        blimp_pair(f"{noun} haven't slept.", f"{noun} hasn't slept.", paradigm) for noun in ("Dogs", "Cats", "Men")
    ]
    pairs += [blimp_pair(f"The {noun} are here.", f"The {noun} is here.", paradigm) for noun in ("dogs", "cats", "men")]
    data = table(tiny, Corpus(tuple(pairs)), train_fraction=0.5)
    tokens = tiny.tokenise([TextInput((sentence_from_text(word),)) for word in ("haven't", "hasn't")])
    splits_at_the_apostrophe = len(tokens[0]) == len(tokens[1])
    assert data.sample["verbs"] == (10 if splits_at_the_apostrophe else 7)
