"""Training and validation examples share no document and no text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bertology.corpus.corpus import Corpus
from bertology.errors import Refusal
from bertology.training.data_split import content_hash, split_examples
from planted_tasks import planted_corpus


def with_documents(corpus: Corpus, n_documents: int) -> Corpus:
    examples = [
        replace(example, segments=(replace(example.segments[0], document=f"d{index % n_documents}"),))
        for index, example in enumerate(corpus)
    ]
    return replace(corpus, examples=tuple(examples))


def test_no_document_is_in_both_splits() -> None:
    split = split_examples(with_documents(planted_corpus("sentence", 200), 20), 0.1, seed=0)
    train, validation = (
        {example.segments[0].document for example in examples} for examples in (split.train, split.validation)
    )
    assert split.grouped_by == "document"
    assert not train & validation
    assert len(split.validation) == 20 and len(split.train) == 180


def test_no_text_is_in_both_splits_if_there_are_few_documents() -> None:
    corpus = with_documents(planted_corpus("sentence", 60), 3)
    copies = tuple(replace(example, id=f"{example.id}b") for example in corpus.examples)
    split = split_examples(replace(corpus, examples=(*corpus.examples, *copies)), 0.2, seed=0)
    assert split.grouped_by == "text"
    train, validation = (
        {example.segments[0].text for example in examples} for examples in (split.train, split.validation)
    )
    assert not train & validation
    assert len(split.validation) == pytest.approx(24, abs=2)


def test_a_split_depends_on_the_seed_but_not_on_the_order_of_the_examples() -> None:
    corpus = planted_corpus("pair", 80)
    reversed_corpus = replace(corpus, examples=corpus.examples[::-1])
    assert split_examples(corpus, 0.1, seed=0) == split_examples(reversed_corpus, 0.1, seed=0)
    assert split_examples(corpus, 0.1, seed=0).validation != split_examples(corpus, 0.1, seed=1).validation
    assert content_hash(corpus.examples) == content_hash(reversed_corpus.examples)
    assert content_hash(corpus.examples) != content_hash(corpus.examples[1:])


def test_corpora_that_cannot_be_split_are_refused() -> None:
    corpus = planted_corpus("sentence", 8)
    with pytest.raises(Refusal, match="has 3 usable examples"):
        split_examples(corpus[:3], 0.1, seed=0)
    with pytest.raises(Refusal, match="the same text"):
        split_examples(replace(corpus, examples=(corpus[0],) * 8), 0.1, seed=0)
    with pytest.raises(Refusal, match="validation-fraction"):
        split_examples(corpus, 1.5, seed=0)
