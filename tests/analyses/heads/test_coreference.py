"""A planted head that attends to antecedents is always right, noise is at chance, and rules follow their definition."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import planted
from bertology.analyses.head_selection.gold_links import CHANCE
from bertology.analyses.head_selection.selection import BEST_ACCURACY, HELD_OUT_ACCURACY, P_VALUE
from bertology.analyses.heads.coreference.analysis import ALL_MENTIONS, NEAREST_MENTION, coreference
from bertology.analyses.heads.coreference.antecedents import antecedent_queries, first_unseen_words
from bertology.analyses.heads.coreference.mentions import (
    extract_mentions,
    head_match_antecedent,
    nearest_antecedent,
    sieve_antecedent,
)
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.read import load_corpus, read
from bertology.corpus.readers.winobias import unbracketed_occupation
from bertology.corpus.sentence import Sentence, Span, sentence_from_text
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record
from bertology.recording.recording import Recording
from bertology.results.shapes import Table
from shared_data import shared

DOCUMENTS = load_corpus("english", unit="document")


def to_antecedent(recorded_input: planted.RecordedInput) -> planted.FloatArray:
    """The head word of a mention attends to that of its last antecedent, all other words to [CLS]."""
    n = len(recorded_input.tokens)
    weights = np.zeros((n, n))
    mentions = extract_mentions(recorded_input.text.segments[0])
    for index, mention in enumerate(mentions):
        antecedents = [other for other in mentions[:index] if other.cluster == mention.cluster]
        if antecedents:
            weights[mention.head_word_index + 1, antecedents[-1].head_word_index + 1] = 1
    weights[weights.sum(1) == 0, 0] = 1
    return weights


RECORDING = planted.make_recording(
    DOCUMENTS, [[planted.random_head(1), planted.offset_head(-1)], [to_antecedent, planted.random_head(2)]]
)


def run(recording: Recording, **options: Any) -> Table:
    data = run_analysis(coreference, RunInputs(recording=recording), options).data
    assert isinstance(data, Table)
    return data


def value(table: Table, row: str, measure: str = HELD_OUT_ACCURACY, baseline: str = "") -> float:
    measures = table.baselines[baseline] if baseline else table.measures
    return float(measures[measure].value[table.row_names.index(row)])


@pytest.mark.parametrize("candidates", ["preceding", "all-words"])
def test_the_planted_head_is_right_for_all_antecedents(candidates: str) -> None:
    result = run(RECORDING, candidates=candidates)
    for row in (ALL_MENTIONS, "pronoun", "common noun"):
        assert value(result, row) == value(result, row, BEST_ACCURACY) == 1, row
        assert value(result, row, P_VALUE) < 0.05, row
        index = result.row_names.index(row)
        assert result.attribute("head", index) == result.attribute("best_head", index) == "2-1", row
    assert value(result, "masculine - feminine") == 0


def test_noise_is_at_chance() -> None:
    noise = planted.make_recording(DOCUMENTS, [[planted.random_head(number) for number in range(4)]])
    result = run(noise)
    assert abs(value(result, ALL_MENTIONS) - value(result, ALL_MENTIONS, baseline=CHANCE)) < 0.06
    with_all_words = run(noise, candidates="all-words")
    assert value(with_all_words, ALL_MENTIONS, baseline=CHANCE) < 0.1
    assert abs(value(with_all_words, ALL_MENTIONS) - value(with_all_words, ALL_MENTIONS, baseline=CHANCE)) < 0.04


def test_a_positional_head_equals_the_nearest_mention() -> None:
    """A head whose attention falls with distance attends to the nearest candidate."""

    def nearby_head(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        positions = np.arange(len(recorded_input.tokens))
        weights = 0.9 ** np.abs(positions[:, None] - positions[None, :])
        return weights / weights.sum(1, keepdims=True)

    documents = Corpus(DOCUMENTS.examples[:8])
    result = run(planted.make_recording(documents, [[nearby_head]]), min_examples=5)
    assert value(result, ALL_MENTIONS, BEST_ACCURACY) == pytest.approx(
        value(result, ALL_MENTIONS, BEST_ACCURACY, NEAREST_MENTION)
    )


TEXT = "Mr. Hale met the two girls of Dr. Lee . They greeted him , and Hale took the girls home ."


def annotated() -> Sentence:
    mentions = (
        Span(0, 2, "h"), Span(3, 9, "g"), Span(7, 9, "l"), Span(10, 11, "g"), Span(12, 13, "h"), Span(15, 16, "h"),
        Span(17, 19, "g"),
    )  # fmt: skip
    return replace(
        sentence_from_text(""), words=tuple(TEXT.split()), offsets=_offsets(TEXT), text=TEXT, mentions=mentions
    )


def _offsets(text: str) -> tuple[tuple[int, int], ...]:
    ends = np.cumsum([len(word) + 1 for word in text.split()]) - 1
    return tuple((int(end) - len(word), int(end)) for end, word in zip(ends, text.split(), strict=True))


def test_mentions_have_heads_types_and_features() -> None:
    result = extract_mentions(annotated())
    assert [m.head_word for m in result] == ["hale", "girls", "lee", "they", "him", "hale", "girls"]
    assert [m.mention_type for m in result] == [
        "proper name",
        "common noun",
        "proper name",
        "pronoun",
        "pronoun",
        "proper name",
        "common noun",
    ]
    assert result[0].features == ("singular", "masculine", "third")
    assert result[1].features == ("plural", "feminine", "third")
    assert result[2].features == ("singular", None, "third")
    assert result[3].features == ("plural", None, "third")


@pytest.mark.parametrize(("word", "form"), [("She's", "she"), ("he’d", "he"), ("They'll", "they"), ("it's", "it")])
def test_a_pronoun_with_a_contracted_verb_is_a_pronoun(word: str, form: str) -> None:
    (mention,) = extract_mentions(replace(sentence_from_text(f"{word} left"), mentions=(Span(0, 1, "a"),)))
    assert (mention.mention_type, mention.words, mention.head_word) == ("pronoun", (form,), form)
    (plain,) = extract_mentions(replace(sentence_from_text(f"{form} left"), mentions=(Span(0, 1, "a"),)))
    assert mention.features == plain.features


def test_a_name_with_a_clitic_is_no_pronoun() -> None:
    (mention,) = extract_mentions(replace(sentence_from_text("They saw Ann's"), mentions=(Span(2, 3, "a"),)))
    assert (mention.mention_type, mention.words) == ("proper name", ("ann's",))


def test_every_pronoun_of_gap_is_a_pronoun() -> None:
    """Ten of the two thousand are part of a longer word: she's, he'd, him-up."""
    for example in load_corpus(str(shared("data/coref/gap-development.tsv"))):
        sentence = example.segments[0]
        (word, *_) = sentence.marked_words["pronoun"]
        types = [mention.mention_type for mention in extract_mentions(sentence) if mention.head_word_index == word]
        assert types == ["pronoun"], sentence.words[word]


def test_rules_choose_antecedents_by_distance_head_word_and_agreement() -> None:
    hale, girls, lee, they, him, hale_again, girls_again = extract_mentions(annotated())
    assert nearest_antecedent(him, [hale, girls, lee, they]) == they
    assert head_match_antecedent(hale_again, [hale, girls, lee, they, him]) == hale
    assert head_match_antecedent(him, [hale, girls, lee, they]) is None
    assert sieve_antecedent(girls_again, [hale, girls, lee, they, him, hale_again]) == girls  # the same head word
    assert sieve_antecedent(they, [hale, girls, lee]) == girls  # agreement in number
    assert sieve_antecedent(him, [hale, girls, lee, they]) == lee  # agreement: the gender of Lee is unknown
    assert sieve_antecedent(hale, [they]) == they  # nothing agrees


def test_only_mentions_with_an_antecedent_have_queries() -> None:
    (recorded_input,) = planted.recorded_inputs(Corpus((Example((annotated(),)),)))
    queries = antecedent_queries(recorded_input, "preceding")
    assert [query.source for query in queries] == [10, 12, 15, 18]
    assert queries[0].candidate_words == (1, 5, 8)
    assert queries[0].is_antecedent == (False, True, False)


def test_windows_use_each_mention_once_and_count_skipped_ones() -> None:
    encoder = load("tiny")
    documents = Corpus(DOCUMENTS.examples[:4])
    full = record(encoder, documents, [], config=RecordingConfig(overflow="truncate", max_length=encoder.max_length))
    config = RecordingConfig(overflow="window", max_length=60)
    windows = record(encoder, documents, [], config=config)
    assert len(windows) > 8
    starts = first_unseen_words(windows.inputs)
    words_by_example: dict[int, list[str]] = {}
    for recorded_input, start in zip(windows.inputs, starts, strict=True):
        words_by_example.setdefault(recorded_input.example_index, []).extend(recorded_input.text.words[start:])
    for index, example in enumerate(documents):
        assert tuple(words_by_example[index]) == example.segments[0].words
    table = run_analysis(coreference, RunInputs(documents, encoder, config=config), {"min_examples": 5}).data
    assert isinstance(table, Table)
    total = sum(len(antecedent_queries(recorded_input, "preceding")) for recorded_input in full.inputs)
    n_queries = sum(
        query.source >= start
        for recorded_input, start in zip(windows.inputs, starts, strict=True)
        for query in antecedent_queries(recorded_input, "preceding")
    )
    assert 0 < n_queries < total
    assert table.sample["anaphoric mentions"] == total
    assert table.sample["mentions without an antecedent in the model's input"] == total - n_queries


def winobias(antecedent: str, pronoun: str, source: str) -> Example:
    words = f"The mover thanked the nurse because {pronoun} was kind".split()
    start = 0 if antecedent == "mover" else 3
    text = " ".join(words)
    marked_words = {"pronoun": (6,), "antecedent": (start, start + 1)}
    sentence = Sentence(
        tuple(words),
        text,
        _offsets(text),
        mentions=(Span(start, start + 2, "0"), Span(6, 7, "0")),
        marked_words=MappingProxyType(marked_words),
    )
    return Example((sentence,), source=source)


def by_stereotype(recorded_input: planted.RecordedInput) -> planted.FloatArray:
    """`he` attends to the mover and `she` to the nurse, in all sentences."""
    n = len(recorded_input.tokens)
    weights = np.full((n, n), 1 / n)
    target = {"he": 2, "she": 5}[recorded_input.text.words[6]]
    weights[7] = np.eye(n)[target]
    return weights


def stereotype_corpus(n_variants: int) -> Corpus:
    """Variants of pro- and anti-stereotyped sentences that differ in their last word."""
    examples: list[Example] = []
    for number in range(n_variants):
        for name, pronouns in (("pro", {"mover": "he", "nurse": "she"}), ("anti", {"mover": "she", "nurse": "he"})):
            for antecedent, pronoun in pronouns.items():
                example = winobias(antecedent, pronoun, f"{name}_stereotyped_type1.txt.dev")
                sentence = example.segments[0]
                sentence = replace(sentence, words=(*sentence.words[:-1], f"kind{number}"))
                examples.append(replace(example, segments=(sentence,)))
    return Corpus(tuple(examples))


def test_a_head_that_follows_stereotypes_has_the_full_gap() -> None:
    result = run(planted.make_recording(stereotype_corpus(12), [[by_stereotype]]), min_examples=5)
    assert value(result, "type 1 pro-stereotyped", BEST_ACCURACY) == 1
    assert value(result, "type 1 anti-stereotyped", BEST_ACCURACY) == 0
    assert value(result, "type 1 pro-stereotyped - type 1 anti-stereotyped", BEST_ACCURACY) == 1
    assert value(result, "type 1 pro-stereotyped - type 1 anti-stereotyped", BEST_ACCURACY, NEAREST_MENTION) == 0
    assert value(result, ALL_MENTIONS, baseline=CHANCE) == 0.5


def test_the_largest_gap_belongs_to_another_head_than_the_best() -> None:
    """A head that follows stereotypes is right in half of the sentences; a better one is selected for pronouns."""
    result = run(planted.make_recording(stereotype_corpus(20), [[by_stereotype, to_antecedent]]), min_examples=5)
    gap = "type 1 pro-stereotyped - type 1 anti-stereotyped"
    assert (value(result, gap), value(result, f"largest gap: {gap}")) == (0, 1)
    for name, head in ((gap, "1-2"), (f"largest gap: {gap}", "1-1")):
        row = result.row_names.index(name)
        assert result.attribute("head", row) == result.attribute("best_head", row) == head


def test_the_unbracketed_occupation_is_the_other_candidate() -> None:
    assert unbracketed_occupation(winobias("mover", "he", "").segments[0]) == Span(3, 5)
    assert unbracketed_occupation(winobias("nurse", "he", "").segments[0]) == Span(0, 2)
    assert unbracketed_occupation(sentence_from_text("Nobody works here.")) is None


def test_every_published_winobias_sentence_has_two_candidates() -> None:
    corpus = read(shared("data/coref/winobias"))
    assert len(corpus) == 4 * 396
    assert all(unbracketed_occupation(sentence) is not None for sentence in corpus.sentences)


def test_gap_antecedents_may_follow_the_pronoun(tmp_path: Path) -> None:
    header = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"
    text = "When she left, Ann met Eve."
    (tmp_path / "gap.tsv").write_text(f"{header}1\t{text}\tshe\t5\tAnn\t15\tTRUE\tEve\t23\tFALSE\t\n", "utf-8")
    (recorded_input,) = planted.recorded_inputs(read(tmp_path / "gap.tsv"))
    (query,) = antecedent_queries(recorded_input, "preceding")
    assert recorded_input.text.words[query.source] == "Ann"  # the name, which `she` precedes
    sources = {recorded_input.text.words[query.source] for query in antecedent_queries(recorded_input, "all-mentions")}
    assert sources == {"she", "Ann"}


def test_corpora_without_antecedents_are_refused() -> None:
    with pytest.raises(Refusal, match="mentions"):
        run(planted.make_recording(planted.make_corpus("nobody here"), [[planted.uniform_head]]))
    single_mention = Corpus((Example((replace(annotated(), mentions=(Span(0, 2, "h"),)),)),))
    with pytest.raises(Refusal, match="unit=document"):
        run(planted.make_recording(single_mention, [[planted.uniform_head]]))
