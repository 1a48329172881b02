"""Batches: every entry once, within the budget, little padding; shards of bounded size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recording.material import DETERMINED, mixed, pairs, tiny

from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import sentence
from bertology.recording import plan as planning
from bertology.recording.plan import make_plan
from bertology.recording.policy import Policy


@DETERMINED
@given(count=st.integers(1, 60), seed=st.integers(0, 9), budget=st.integers(1, 400))
def test_every_entry_is_in_one_batch_within_the_budget(count: int, seed: int, budget: int) -> None:
    plan = make_plan(tiny(), mixed(count, seed=seed), Policy(batch_pieces=budget))
    batches = [batch for shard in plan.shards for batch in shard]
    assert sorted(index for batch in batches for index in batch) == list(range(count))
    assert [entry.item for entry in plan.entries] == list(range(count))
    lengths = [len(entry.pieces) for entry in plan.entries]
    in_order = [lengths[index] for batch in batches for index in batch]
    assert in_order == sorted(in_order)
    for batch in batches:
        assert len(batch) == 1 or max(lengths[i] for i in batch) * len(batch) <= budget


def test_batches_of_mixed_lengths_pad_little() -> None:
    plan = make_plan(tiny(), mixed(400, longest=40), Policy())
    lengths = [[len(plan.entries[i].pieces) for i in batch] for shard in plan.shards for batch in shard]
    padded = sum(max(batch) * len(batch) for batch in lengths)
    assert padded / sum(map(sum, lengths)) < 1.06


def test_shards_of_short_inputs_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a site keeps may be as much for a short input as for a long one, so that maps do not tell how much it is."""
    monkeypatch.setattr(planning, "SHARD_INPUTS", 50)
    plan = make_plan(tiny(), mixed(220, longest=4), Policy(batch_pieces=60))
    sizes = [sum(map(len, shard)) for shard in plan.shards]
    assert sum(sizes) == 220 and max(sizes) <= 50
    assert len(sizes) < 8, "shards are filled"


def test_what_does_not_align_is_counted() -> None:
    odd = Corpus((Item((sentence(["un", "\u200b", "cat"]),)), *mixed(3), *pairs(2)))
    counts = make_plan(tiny(), odd, Policy()).counts
    assert counts["inputs"] == 6
    assert counts["vanished words"] == 1
    assert counts["words"] == sum(len(part) for part in odd.sentences)
    assert counts["split words"] > 0


def test_the_options_of_an_item_are_entries_of_their_own() -> None:
    parts = tuple(sentence(text.split()) for text in ("a story .", "who ?", "he", "she"))
    plan = make_plan(tiny(), Corpus((Item(parts, "choice"), Item(parts[:2], "minimal_pair"))), Policy())
    assert [(entry.item, entry.variant) for entry in plan.entries] == [(0, 0), (0, 1), (1, 0), (1, 1)]
