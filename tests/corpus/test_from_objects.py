"""Corpora from Python objects: every form in one line, first tries of a newcomer, and refusals of anything else."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
from tests.corpus.checks import assert_offsets_match, assert_valid

import bertology
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.read import as_corpus, load_corpus
from bertology.corpus.sentence import Span, sentence_from_text
from bertology.errors import Refusal

TEXTS = ["The cat sat.", "A dog ran.", "It rains.", "We left."]
CONLLU = """\
# text = Dogs bark
1	Dogs	dog	NOUN	NNS	_	2	nsubj	_	_
2	bark	bark	VERB	VBP	_	0	root	_	_
"""


def texts(corpus: Corpus) -> list[str]:
    return [" | ".join(segment.text for segment in example.segments) for example in corpus]


@pytest.mark.parametrize("n_texts", [1, 2, 3, 4])
def test_a_list_of_strings_has_one_sentence_per_string(n_texts: int) -> None:
    corpus = bertology.corpus(TEXTS[:n_texts])
    assert_valid(corpus)
    assert texts(corpus) == TEXTS[:n_texts] and {example.kind for example in corpus} == {"sentence"}
    assert [example.id for example in corpus] == [str(number) for number in range(1, n_texts + 1)]


def test_the_form_of_the_list_does_not_matter() -> None:
    expected = bertology.corpus(TEXTS).fingerprint
    assert bertology.corpus(tuple(TEXTS)).fingerprint == expected
    assert bertology.corpus(iter(TEXTS)).fingerprint == expected
    assert as_corpus(TEXTS).fingerprint == expected


def test_tuples_of_two_strings_are_pairs() -> None:
    corpus = bertology.corpus([("A dog sleeps.", "An animal rests."), ("It rains.", "It is dry.")])
    assert [example.kind for example in corpus] == ["pair", "pair"]
    assert texts(corpus)[0] == "A dog sleeps. | An animal rests."
    mixed = bertology.corpus(["One text.", ("A pair", "of texts.")])
    assert [example.kind for example in mixed] == ["sentence", "pair"]


def test_lists_of_texts_are_not_taken_for_words() -> None:
    with pytest.raises(Refusal, match=r"Make tuples of pairs, \(first, second\)"):
        bertology.corpus([["A dog sleeps.", "An animal rests."]])
    assert bertology.corpus([["New York", "sleeps"]])[0].segments[0].words == ("New York", "sleeps")


def test_a_text_in_place_of_a_corpus_is_refused_with_what_to_write() -> None:
    with pytest.raises(Refusal, match=r"put texts into a list: \[text\]"):
        as_corpus("The cat sat on the mat.")


def test_labels_are_given_as_a_list_or_by_name() -> None:
    corpus = bertology.corpus(TEXTS[:2], label=["a", "b"])
    assert [example.label for example in corpus] == ["a", "b"]
    assert [example.segments[0].label for example in corpus] == ["a", "b"]
    named = bertology.corpus(TEXTS[:2], label={"topic": ["x", "y"], "stars": [1, None]})
    assert [dict(example.labels) for example in named] == [{"topic": "x", "stars": "1"}, {"topic": "y"}]
    assert [example.label for example in named.with_label("topic")] == ["x", "y"]
    with pytest.raises(Refusal, match="2 examples and 1 values"):
        bertology.corpus(TEXTS[:2], label=["a"])
    with pytest.raises(Refusal, match="names a column"):
        bertology.corpus(TEXTS[:2], label="topic")


def test_words_with_labels() -> None:
    corpus = bertology.corpus([(["Ann", "Lee", "sang"], ["B-PER", "I-PER", "O"])], word_labels="ner")
    assert_valid(corpus)
    sentence = corpus[0].segments[0]
    assert dict(sentence.word_labels) == {"ner": ("B-PER", "I-PER", "O")}
    assert dict(sentence.span_labels) == {"ner": (Span(0, 2, "PER"),)} and sentence.entities == (Span(0, 2, "PER"),)
    by_name = bertology.corpus(
        [["Ann", "sang"], ["Go"]],
        word_labels={"colour": [["red", "blue"], ["red"]]},
        span_labels={"part": [[(0, 2, "all")], []]},
        label=["x", "y"],
    )
    assert [dict(s.word_labels) for s in by_name.sentences] == [{"colour": ("red", "blue")}, {"colour": ("red",)}]
    assert [dict(s.span_labels) for s in by_name.sentences] == [{"part": (Span(0, 2, "all"),)}, {"part": ()}]
    assert [example.label for example in by_name] == ["x", "y"]


def test_a_pandas_frame() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["Good film.", "Bad film."], "label": [1, 0], "topic": ["war", None]})
    corpus = bertology.corpus(frame)
    assert_valid(corpus)
    assert_offsets_match(corpus)
    assert [example.label for example in corpus] == ["1", "0"]
    assert [dict(example.labels) for example in corpus] == [{"topic": "war"}, {}], "missing cells are no labels"
    assert texts(bertology.corpus(frame["text"])) == ["Good film.", "Bad film."], "a series is a list of texts"
    renamed = frame.rename(columns={"text": "body of the mail"})
    with pytest.raises(Refusal, match="text='column'"):
        bertology.corpus(renamed)
    named = bertology.corpus(renamed, text="body of the mail", label="topic")
    assert (len(named), named.skipped) == (2, ()), "columns that were not asked for are not skipped"


def test_a_polars_frame_equals_the_pandas_frame() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    data = {
        "premise": ["A dog sleeps.", "It rains."],
        "hypothesis": ["It runs.", "It is wet."],
        "gold_label": ["n", "e"],
    }
    frames = pandas.DataFrame(data), polars.DataFrame(data), polars.DataFrame(data).lazy(), data
    corpora = [bertology.corpus(frame) for frame in frames]
    assert len({corpus.fingerprint for corpus in corpora}) == 1
    assert [example.label for example in corpora[0]] == ["n", "e"] and corpora[0][0].kind == "pair"
    chosen = bertology.corpus(frames[0], pair=("hypothesis", "premise"))
    assert texts(chosen)[0] == "It runs. | A dog sleeps."


def test_a_dataset_with_class_names() -> None:
    datasets = pytest.importorskip("datasets")
    names = datasets.ClassLabel(names=["negative", "positive"])
    features = datasets.Features({"sentence": datasets.Value("string"), "label": names, "idx": datasets.Value("int32")})
    rows = {"sentence": ["A good film.", "Bad.", "Hidden."], "label": [1, 0, -1], "idx": [0, 1, 2]}
    data = datasets.Dataset.from_dict(rows, features=features)
    corpus = bertology.corpus(data)
    assert_valid(corpus)
    assert [example.label for example in corpus] == ["positive", "negative", None]
    assert (corpus.format, corpus.label_names.examples["idx"]) == ("datasets", 3)
    streamed = bertology.corpus(data.to_iterable_dataset(), limit=2)
    assert streamed.fingerprint == corpus[:2].fingerprint
    with pytest.raises(Refusal, match=r"data\['train'\]"):
        bertology.corpus(datasets.DatasetDict(train=data))


def test_a_dataset_of_tagged_words() -> None:
    datasets = pytest.importorskip("datasets")
    tags = datasets.List(datasets.ClassLabel(names=["O", "B-PER", "I-PER"]))
    features = datasets.Features({"tokens": datasets.List(datasets.Value("string")), "ner_tags": tags})
    rows = {"tokens": [["Ann", "Lee", "sang"], ["No"]], "ner_tags": [[1, 2, 0], [0]]}
    corpus = bertology.corpus(datasets.Dataset.from_dict(rows, features=features))
    assert_valid(corpus)
    assert [sentence.entities for sentence in corpus.sentences] == [(Span(0, 2, "PER"),), ()]
    assert dict(corpus[0].segments[0].word_labels) == {"ner_tags": ("B-PER", "I-PER", "O")}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the library leaves streamed files open
def test_a_data_set_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "films").mkdir()
    (tmp_path / "films" / "train.csv").write_text("text,label\nA good film.,pos\nBad.,neg\n")
    address = f"datasets:{tmp_path / 'films'}:train"
    whole, first = load_corpus(address), load_corpus(address, limit=1)
    assert ([example.label for example in whole], whole.name) == (["pos", "neg"], "films:train")
    assert texts(first) == ["A good film."], "with a limit the data are streamed"
    gc.collect()
    assert bertology.read(address).fingerprint == as_corpus(address).fingerprint == whole.fingerprint
    with pytest.raises(Refusal, match="cannot be loaded"):
        load_corpus(f"datasets:{tmp_path / 'nothing'}:train")


def test_conllu_text() -> None:
    corpus = bertology.corpus(CONLLU)
    assert_valid(corpus)
    assert corpus[0].segments[0].governors == (1, -1)
    with pytest.raises(Refusal, match="CoNLL-U text, line 2"):
        bertology.corpus(CONLLU.replace("\t2\tnsubj", "\t9\tnsubj"))


def test_examples_and_sentences_are_kept() -> None:
    sentence = sentence_from_text("Dogs bark.")
    assert bertology.corpus([Example((sentence,))])[0].segments[0] is sentence
    assert bertology.corpus([sentence])[0].segments[0] is sentence
    corpus = bertology.corpus(TEXTS)
    assert as_corpus(corpus) is corpus and bertology.corpus(corpus, limit=1).examples == corpus.examples[:1]


def test_names_and_paths() -> None:
    english = load_corpus("english")
    for corpus in (bertology.read("english"), as_corpus("english"), bertology.corpus("english")):
        assert corpus.fingerprint == english.fingerprint


@pytest.mark.parametrize(
    "data",
    [
        None, 3, b"bytes", object(), [], [1, 2], ["text", 3], [("a", "b", "c")], [["a", 1]], [None], {"a": 1}, {},
        "A single text.", "enlgish", [{"a": 1}, "text"], [("text", 1)],
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_what_is_accepted(data: Any) -> None:
    with pytest.raises(Refusal, match="list"):
        bertology.corpus(data)
    with pytest.raises(Refusal):
        as_corpus(data)


def test_empty_texts_are_refused_or_counted() -> None:
    with pytest.raises(Refusal, match="line 2"):
        bertology.corpus(["Yes.", " "])
    corpus = bertology.corpus(["Yes.", " "], skip_malformed=True)
    assert (len(corpus), [skip.reason for skip in corpus.skipped]) == (1, ["missing text"])


def test_columns_of_a_list_of_texts_are_refused() -> None:
    with pytest.raises(Refusal, match="has no columns"):
        bertology.corpus(TEXTS, text="text")


def test_the_limit_stops_reading() -> None:
    assert len(bertology.corpus(({"a": f"row {n}"} for n in range(10**9)), text="a", limit=3)) == 3
    assert len(bertology.corpus((f"row {n}" for n in range(10**9)), limit=3)) == 3


def test_the_corpus_package_is_also_a_function() -> None:
    import bertology.corpus.read as module

    assert module.as_corpus is as_corpus and callable(bertology.corpus)
