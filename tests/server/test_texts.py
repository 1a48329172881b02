"""The text of a request is the example that it names, and one that does not exist is refused."""

from __future__ import annotations

import pytest

import planted
import tiny_models
from bertology.errors import Refusal
from bertology.server.texts import TextRequest, tokenise_request


def test_an_example_is_named_by_its_number() -> None:
    corpus, encoder = planted.make_corpus("A dog!", "It rains.", "She ran."), tiny_models.encoder("bert")
    assert tokenise_request(encoder, TextRequest(example=2), corpus).text.words == ("She", "ran", ".")
    with pytest.raises(Refusal, match=r"There is no example 3.*a number from 0 to 2"):
        tokenise_request(encoder, TextRequest(example=3), corpus)
