"""The text that hashes are computed from does not change, so that splits and samples stay the same."""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType

from tests.corpus.sentences import FULL

from bertology.corpus.example import Example
from bertology.corpus.example_json import STORED_KEYS
from bertology.corpus.hashing import hash_text


def test_the_hashed_text_has_the_stored_keys() -> None:
    """Other keys would change the order of examples in random splits, and with it published numbers."""
    assert set(STORED_KEYS) == {"segments", "morphology", "governors", "answer_spans", "marked_words"}
    data = json.loads(hash_text(Example((FULL,))))
    assert set(data) == {"kind", "parts"}
    assert {"features", "heads", "answers", "marks"} < set(data["parts"][0])


def test_factors_are_hashed_as_the_source_of_an_example_without_source() -> None:
    factors = MappingProxyType({"condition": "A1", "distance": "3"})
    assert json.loads(hash_text(Example((FULL,), factors=factors)))["source"] == "condition=A1;distance=3"
    assert json.loads(hash_text(Example((FULL,), source="agr.4", factors=factors)))["source"] == "agr.4"


def test_labels_by_name_do_not_change_the_order_of_examples() -> None:
    bare = replace(FULL, word_labels=MappingProxyType({}), span_labels=MappingProxyType({}))
    labelled = Example((FULL,), labels=MappingProxyType({"genre": "fiction"}))
    assert hash_text(labelled) == hash_text(Example((bare,)))
