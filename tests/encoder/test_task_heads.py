"""A head for every task on every family, over the weights as they were; blocks frozen, dropped and made fresh."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import models
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.load import load
from bertology.encoder.task_heads import HeadName, save, with_head
from bertology.encoder.variant import Variant, blocks_of
from bertology.errors import Refusal

HEADS: dict[HeadName, frozenset[str]] = {
    "label": frozenset({"label"}),
    "token": frozenset({"token"}),
    "answer": frozenset({"answer_start", "answer_end"}),
    "choice": frozenset({"choice"}),
    "none": frozenset(),
}
LABELS = ("a", "b", "c")


def headed(name: str, head: HeadName = "label", variant: Variant = Variant(), seed: int = 0) -> HuggingFaceEncoder:
    return with_head(
        models.encoder(name), head, LABELS if head in {"label", "token"} else (), variant=variant, seed=seed
    )


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("name", models.FAMILIES)
def test_the_weights_below_a_head_are_the_encoders(name: str, head: HeadName, tmp_path: Path) -> None:
    if name == "gpt2" and head == "choice":
        with pytest.raises(Refusal, match="no class with the head 'choice'"):
            headed(name, head)
        return
    made, before = headed(name, head), models.encoder(name)
    assert made.outputs == HEADS[head]
    batch = models.batch(made.tokenise(models.inputs(models.TEXTS[:3])))
    for one, other in zip(made.run(batch, hidden=True).hidden, before.run(batch, hidden=True).hidden, strict=True):
        torch.testing.assert_close(one[batch.mask.bool()], other[batch.mask.bool()])
    save(made, tmp_path)
    again = load(str(tmp_path))
    torch.testing.assert_close(dict(again.run(batch).logits), dict(made.run(batch).logits))


def _changed(made: HuggingFaceEncoder, before: HuggingFaceEncoder) -> set[str]:
    """Which blocks, by number, and whether the embeddings, differ."""
    found = {
        str(place)
        for place, (one, other) in enumerate(
            zip(blocks_of(made.model.base_model), blocks_of(before.model.base_model), strict=False), start=1
        )
        if any(not torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    }
    same = torch.equal(made.model.get_input_embeddings().weight, before.model.get_input_embeddings().weight)
    return found if same else found | {"embeddings"}


BLOCKED = [name for name in models.FAMILIES if name != "albert"]


@pytest.mark.parametrize("name", BLOCKED)
def test_blocks_are_dropped_made_fresh_and_frozen(name: str) -> None:
    before = models.encoder(name)
    layers = before.layers
    every = {str(place) for place in range(1, layers + 1)}
    cut = headed(name, variant=Variant(truncate=1))
    assert cut.layers == len(blocks_of(cut.model.base_model)) == 1
    assert not _changed(cut, before)
    assert _changed(headed(name, variant=Variant(reinitialise=1)), before) == {str(layers)}
    assert _changed(headed(name, variant=Variant(random=True)), before) == {*every, "embeddings"}
    frozen = headed(name, variant=Variant(freeze=1))
    states: list[bool] = [any(p.requires_grad for p in b.parameters()) for b in blocks_of(frozen.model.base_model)]
    assert states == [False, *[True] * (layers - 1)]
    assert not frozen.model.get_input_embeddings().weight.requires_grad
    assert all(weights.requires_grad for weights in headed(name).model.parameters())


def test_a_pooler_above_fresh_blocks_is_fresh() -> None:
    before: Any = models.encoder("bert").model
    for variant, same in ((Variant(), True), (Variant(reinitialise=1), False)):
        made: Any = headed("bert", variant=variant).model
        assert torch.equal(made.bert.pooler.dense.weight, before.pooler.dense.weight) == same


def test_no_block_at_all_may_be_left() -> None:
    made = headed("bert", variant=Variant(truncate=0))
    assert made.layers == 0
    batch = models.batch(made.tokenise(models.inputs(models.TEXTS[:3])))
    assert made.run(batch).logits["label"].shape == (3, 3)


def test_the_encoder_is_left_as_it_was() -> None:
    before = models.encoder("bert").fingerprint
    made = headed("bert")
    with torch.no_grad():
        for weights in made.model.parameters():
            weights.add_(1.0)
    assert models.encoder("bert").fingerprint == before


def test_a_head_is_the_same_for_the_same_seed() -> None:
    one, same, other = (headed("bert", seed=seed).model.classifier.weight for seed in (0, 0, 1))
    assert torch.equal(one, same) and not torch.equal(one, other)


@pytest.mark.parametrize("variant", [Variant(freeze=3), Variant(truncate=3), Variant(reinitialise=3)])
def test_blocks_that_are_not_there_are_refused(variant: Variant) -> None:
    with pytest.raises(Refusal, match=r"was given 3, and .* has 2 blocks"):
        headed("bert", variant=variant)


def test_shared_blocks_are_refused() -> None:
    with pytest.raises(Refusal, match="ALBERT"):
        headed("albert", variant=Variant(freeze=1))
