"""N-th token: the target is at position n, and its word class varies."""

from __future__ import annotations

import pytest
from tests.corpus.generators.word_classes import letters

from bertology.corpus.generate import generate
from bertology.errors import Refusal


@pytest.mark.parametrize("n", range(2, 10))
def test_the_target_is_the_nth_word(n: int) -> None:
    corpus = generate("nth_token", size=60, seed=n, n=n)
    assert all(sentence.marked_words["target"] == (n - 1,) for sentence in corpus.sentences)
    assert all(12 <= len(sentence) <= 39 for sentence in corpus.sentences)
    assert len({letters(sentence.words)[n - 1] for sentence in corpus.sentences}) >= 2


@pytest.mark.parametrize("n", [0, 1, 10, "x", "-3"])
def test_other_positions_are_refused(n: int | str) -> None:
    with pytest.raises(Refusal, match="from 2 to 9"):
        generate("nth_token", size=5, n=n)


def test_train_and_test_share_no_sentence() -> None:
    train, test = (
        {sentence.text for sentence in generate("nth_token", size=200, seed=1, split=name).sentences}
        for name in ("train", "test")
    )
    assert not train & test
