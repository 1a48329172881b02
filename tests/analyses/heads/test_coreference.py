"""A planted head that looks at antecedents finds them all, noise finds as many as a guess, and rules do as written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import planted
from bertology.analyses.heads.coreference import ANY_CANDIDATE, NEAREST, coreference
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.occupations import other_occupation
from bertology.corpus.read import read
from bertology.corpus.sentence import Sentence, Span, from_text
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.measures.heads.antecedents import new_words, searches
from bertology.measures.heads.head_choice import BEST, HELD_OUT, P
from bertology.measures.heads.mentions import by_sieves, mentions_of, nearest, same_head
from bertology.recording.policy import Policy
from bertology.recording.recorder import record
from bertology.recording.recording import Recording
from bertology.results.shapes import Table

DOCUMENTS = corpus_named("english", unit="document")


def to_antecedent(entry: planted.Entry) -> planted.Floats:
    """The head word of a mention looks at that of its last antecedent, all else at [CLS]."""
    n = len(entry.pieces)
    weights = np.zeros((n, n))
    there = mentions_of(entry.input.parts[0])
    for place, mention in enumerate(there):
        before = [other for other in there[:place] if other.cluster == mention.cluster]
        if before:
            weights[mention.head + 1, before[-1].head + 1] = 1
    weights[weights.sum(1) == 0, 0] = 1
    return weights


RECORDING = planted.recording_of(
    DOCUMENTS, [[planted.noise(1), planted.looking_at(-1)], [to_antecedent, planted.noise(2)]]
)


def table_of(recording: Recording, **options: Any) -> Table:
    data = run(coreference, Subject(recording=recording), options).data
    assert isinstance(data, Table)
    return data


def value(table: Table, row: str, measure: str = HELD_OUT, baseline: str = "") -> float:
    measures = table.baselines[baseline] if baseline else table.measures
    return float(measures[measure].value[table.rows_named.index(row)])


@pytest.mark.parametrize("among", ["preceding", "words"])
def test_the_planted_head_finds_all_antecedents(among: str) -> None:
    found = table_of(RECORDING, among=among)
    for row in ("all", "pronoun", "nominal"):
        assert value(found, row) == value(found, row, BEST) == 1, row
        assert value(found, row, P) < 0.05, row
        assert found.notes[row].startswith("held out 2-1; best 2-1"), row
    assert value(found, "masculine minus feminine") == 0


def test_noise_guesses() -> None:
    noise = planted.recording_of(DOCUMENTS, [[planted.noise(number) for number in range(4)]])
    found = table_of(noise)
    assert abs(value(found, "all") - value(found, "all", baseline=ANY_CANDIDATE)) < 0.06
    words = table_of(noise, among="words")
    assert value(words, "all", baseline=ANY_CANDIDATE) < 0.1
    assert abs(value(words, "all") - value(words, "all", baseline=ANY_CANDIDATE)) < 0.04


def test_the_nearest_mention_is_what_a_head_of_distances_finds() -> None:
    """A head whose attention falls with distance looks at the nearest candidate."""

    def falling(entry: planted.Entry) -> planted.Floats:
        places = np.arange(len(entry.pieces))
        weights = 0.9 ** np.abs(places[:, None] - places[None, :])
        return weights / weights.sum(1, keepdims=True)

    short = Corpus(DOCUMENTS.items[:8])
    found = table_of(planted.recording_of(short, [[falling]]), minimum=5)
    assert value(found, "all", BEST) == pytest.approx(value(found, "all", BEST, NEAREST))


TEXT = "Mr. Hale met the two girls of Dr. Lee . They greeted him , and Hale took the girls home ."


def annotated() -> Sentence:
    mentions = (
        Span(0, 2, "h"), Span(3, 9, "g"), Span(7, 9, "l"), Span(10, 11, "g"), Span(12, 13, "h"), Span(15, 16, "h"),
        Span(17, 19, "g"),
    )  # fmt: skip
    return replace(from_text(""), words=tuple(TEXT.split()), offsets=_offsets(TEXT), text=TEXT, mentions=mentions)


def _offsets(text: str) -> tuple[tuple[int, int], ...]:
    ends = np.cumsum([len(word) + 1 for word in text.split()]) - 1
    return tuple((int(end) - len(word), int(end)) for end, word in zip(ends, text.split(), strict=True))


def test_mentions_have_heads_types_and_features() -> None:
    found = mentions_of(annotated())
    assert [m.head_word for m in found] == ["hale", "girls", "lee", "they", "him", "hale", "girls"]
    assert [m.kind for m in found] == ["proper", "nominal", "proper", "pronoun", "pronoun", "proper", "nominal"]
    assert found[0].features == ("one", "masculine", "third")
    assert found[1].features == ("many", "feminine", "third")
    assert found[2].features == ("one", None, "third")
    assert found[3].features == ("many", None, "third")


def test_rules_find_what_they_should() -> None:
    hale, girls, lee, they, him, again, home = mentions_of(annotated())
    assert nearest(him, [hale, girls, lee, they]) == they
    assert same_head(again, [hale, girls, lee, they, him]) == hale
    assert same_head(him, [hale, girls, lee, they]) is None
    assert by_sieves(home, [hale, girls, lee, they, him, again]) == girls  # the same head word
    assert by_sieves(they, [hale, girls, lee]) == girls  # agreement in number
    assert by_sieves(him, [hale, girls, lee, they]) == lee  # agreement, as nothing says what Lee is
    assert by_sieves(hale, [they]) == they  # nothing agrees


def test_only_mentions_with_an_antecedent_are_asked() -> None:
    (entry,) = planted.entries_of(Corpus((Item((annotated(),)),)))
    asked = searches(entry, "preceding")
    assert [search.source for search in asked] == [10, 12, 15, 18]
    assert asked[0].words == (1, 5, 8)
    assert asked[0].right == (False, True, False)


def test_windows_ask_once_and_what_is_lost_is_counted() -> None:
    encoder = load("tiny")
    documents = Corpus(DOCUMENTS.items[:4])
    whole = record(encoder, documents, [], policy=Policy(long="truncate", max_pieces=encoder.max_pieces))
    policy = Policy(long="window", max_pieces=60)
    windows = record(encoder, documents, [], policy=policy)
    assert len(windows) > 8
    starts = new_words(windows.entries)
    seen: dict[int, list[str]] = {}
    for entry, start in zip(windows.entries, starts, strict=True):
        seen.setdefault(entry.item, []).extend(entry.input.words[start:])
    for number, item in enumerate(documents):
        assert tuple(seen[number]) == item.parts[0].words
    table = run(coreference, Subject(documents, encoder, policy=policy), {"minimum": 5}).data
    assert isinstance(table, Table)
    total = sum(len(searches(entry, "preceding")) for entry in whole.entries)
    asked = sum(
        one.source >= start
        for entry, start in zip(windows.entries, starts, strict=True)
        for one in searches(entry, "preceding")
    )
    assert 0 < asked < total
    assert table.notes["all"].endswith(
        f"{total - asked} of {total} mentions have no antecedent in what the model was shown"
    )


def winobias(antecedent: str, pronoun: str, source: str) -> Item:
    words = f"The mover thanked the nurse because {pronoun} was kind".split()
    first = 0 if antecedent == "mover" else 3
    text = " ".join(words)
    marks = {"pronoun": (6,), "antecedent": (first, first + 1)}
    part = Sentence(
        tuple(words),
        text,
        _offsets(text),
        mentions=(Span(first, first + 2, "0"), Span(6, 7, "0")),
        marks=MappingProxyType(marks),
    )
    return Item((part,), source=source)


def by_stereotype(entry: planted.Entry) -> planted.Floats:
    """`he` looks at the mover and `she` at the nurse, whoever is meant."""
    n = len(entry.pieces)
    weights = np.full((n, n), 1 / n)
    target = {"he": 2, "she": 5}[entry.input.words[6]]
    weights[7] = np.eye(n)[target]
    return weights


def test_a_head_that_goes_by_stereotypes_has_the_whole_gap() -> None:
    items: list[Item] = []
    for number in range(12):
        for name, fits in (("pro", {"mover": "he", "nurse": "she"}), ("anti", {"mover": "she", "nurse": "he"})):
            for who, pronoun in fits.items():
                item = winobias(who, pronoun, f"{name}_stereotyped_type1.txt.dev")
                part = replace(item.parts[0], words=(*item.parts[0].words[:-1], f"kind{number}"))
                items.append(replace(item, parts=(part,)))
    found = table_of(planted.recording_of(Corpus(tuple(items)), [[by_stereotype]]), minimum=5)
    assert value(found, "type 1 pro-stereotyped", BEST) == 1
    assert value(found, "type 1 anti-stereotyped", BEST) == 0
    assert value(found, "type 1 pro-stereotyped minus type 1 anti-stereotyped", BEST) == 1
    assert value(found, "type 1 pro-stereotyped minus type 1 anti-stereotyped", BEST, NEAREST) == 0
    assert value(found, "all", baseline=ANY_CANDIDATE) == 0.5


def test_the_widest_gap_is_found_beside_a_better_head() -> None:
    """A head that goes by stereotypes is right half of the time; one that knows better is chosen for pronouns."""
    items: list[Item] = []
    for number in range(20):
        for name, fits in (("pro", {"mover": "he", "nurse": "she"}), ("anti", {"mover": "she", "nurse": "he"})):
            for who, pronoun in fits.items():
                item = winobias(who, pronoun, f"{name}_stereotyped_type1.txt.dev")
                part = replace(item.parts[0], words=(*item.parts[0].words[:-1], f"kind{number}"))
                items.append(replace(item, parts=(part,)))
    found = table_of(planted.recording_of(Corpus(tuple(items)), [[by_stereotype, to_antecedent]]), minimum=5)
    gap = "type 1 pro-stereotyped minus type 1 anti-stereotyped"
    assert (value(found, gap), value(found, f"widest: {gap}")) == (0, 1)
    assert found.notes[gap] == "of the head for type 1: held out 1-2, best 1-2"
    assert found.notes[f"widest: {gap}"] == "of the head with the widest gap: held out 1-1, best 1-1"


def test_the_unmarked_occupation_is_found() -> None:
    assert other_occupation(winobias("mover", "he", "").parts[0]) == Span(3, 5)
    assert other_occupation(winobias("nurse", "he", "").parts[0]) == Span(0, 2)
    assert other_occupation(from_text("Nobody works here.")) is None


def test_real_winobias_has_two_candidates_everywhere() -> None:
    from shared_data import shared

    corpus = read(shared("data/coref/winobias"))
    assert len(corpus) == 4 * 396
    assert all(other_occupation(part) is not None for part in corpus.sentences)


def test_gap_looks_on_both_sides(tmp_path: Path) -> None:
    header = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"
    text = "When she left, Ann met Eve."
    (tmp_path / "gap.tsv").write_text(f"{header}1\t{text}\tshe\t5\tAnn\t15\tTRUE\tEve\t23\tFALSE\t\n", "utf-8")
    (entry,) = planted.entries_of(read(tmp_path / "gap.tsv"))
    (forward,) = searches(entry, "preceding")
    assert entry.input.words[forward.source] == "Ann"  # of the name: she comes before it
    sources = {entry.input.words[one.source] for one in searches(entry, "mentions")}
    assert sources == {"she", "Ann"}


def test_annotation_is_needed_and_something_to_find() -> None:
    with pytest.raises(Refusal, match="mentions"):
        table_of(planted.recording_of(planted.corpus_of("nobody here"), [[planted.uniform]]))
    lonely = Corpus((Item((replace(annotated(), mentions=(Span(0, 2, "h"),)),)),))
    with pytest.raises(Refusal, match="unit=document"):
        table_of(planted.recording_of(lonely, [[planted.uniform]]))
