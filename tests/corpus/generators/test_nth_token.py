"""N-th token: the mark stands where n says, and the word there varies."""

from __future__ import annotations

import pytest
from tests.corpus.generators.word_classes import letters

from bertology.corpus.generate import generate
from bertology.errors import Refusal


@pytest.mark.parametrize("n", range(2, 10))
def test_the_mark_is_the_nth_word(n: int) -> None:
    corpus = generate("nth_token", size=60, seed=n, n=n)
    assert all(part.marks["target"] == (n - 1,) for part in corpus.sentences)
    assert all(12 <= len(part) <= 39 for part in corpus.sentences)
    assert len({letters(part.words)[n - 1] for part in corpus.sentences}) >= 2


@pytest.mark.parametrize("n", [0, 1, 10, "x", "-3"])
def test_other_positions_are_refused(n: int | str) -> None:
    with pytest.raises(Refusal, match="from 2 to 9"):
        generate("nth_token", size=5, n=n)


def test_train_and_test_are_disjoint() -> None:
    train, test = (
        {part.text for part in generate("nth_token", size=200, seed=1, split=name).sentences}
        for name in ("train", "test")
    )
    assert not train & test
