"""Task heads on every family, with unchanged encoder weights; layers frozen, removed and re-initialised."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import torch

import tiny_models
from bertology.encoder.attention_hook import LayerActivations
from bertology.encoder.encoder import Encoder, ModelInputs, TaskEncoder
from bertology.encoder.layer_variants import LayerVariant, transformer_layers
from bertology.encoder.load import load
from bertology.encoder.task_heads import TaskHeadName, add_task_head, label_ids, save_pretrained
from bertology.errors import Refusal

TASK_HEADS: dict[TaskHeadName, frozenset[str]] = {
    "label": frozenset({"label"}),
    "token": frozenset({"token"}),
    "answer": frozenset({"answer_start", "answer_end"}),
    "choice": frozenset({"choice"}),
    "none": frozenset(),
}
LABELS = ("a", "b", "c")


def with_task_head(
    name: str, task_head: TaskHeadName = "label", variant: LayerVariant = LayerVariant(), seed: int = 0
) -> TaskEncoder:
    labels = LABELS if task_head in {"label", "token"} else ()
    return add_task_head(tiny_models.encoder(name), task_head, labels, variant=variant, seed=seed)


@pytest.mark.parametrize("task_head", TASK_HEADS)
@pytest.mark.parametrize("name", tiny_models.FAMILIES)
def test_the_encoder_below_a_task_head_is_unchanged(name: str, task_head: TaskHeadName, tmp_path: Path) -> None:
    if name == "gpt2" and task_head == "choice":
        with pytest.raises(Refusal, match="no class with the task head 'choice'"):
            with_task_head(name, task_head)
        return
    encoder, before = with_task_head(name, task_head), tiny_models.encoder(name)
    assert encoder.task_heads == TASK_HEADS[task_head]
    batch = tiny_models.batch(encoder.tokenise(tiny_models.inputs(tiny_models.TEXTS[:3])))
    mask = batch.attention_mask.bool()
    states, expected = (model.forward(batch, hidden=True).hidden_states for model in (encoder, before))
    for actual_states, expected_states in zip(states, expected, strict=True):
        torch.testing.assert_close(actual_states[mask], expected_states[mask])
    save_pretrained(encoder, tmp_path)
    restored = load(str(tmp_path))
    torch.testing.assert_close(dict(restored.forward(batch).logits), dict(encoder.forward(batch).logits))


def _assert_same_without_logits(encoder: Encoder, batch: ModelInputs) -> None:
    layers: tuple[list[LayerActivations], list[LayerActivations]] = ([], [])
    with torch.inference_mode():
        whole = encoder.forward(batch, on_layer=layers[0].append, hidden=True)
        without = encoder.forward(batch, on_layer=layers[1].append, hidden=True, logits=False)
        plain = encoder.forward(batch, hidden=True, logits=False)
    assert set(whole.logits) == encoder.task_heads and not without.logits and not plain.logits
    for states, expected in zip(without.hidden_states, whole.hidden_states, strict=True):
        assert torch.equal(states, expected)
    for layer, expected in zip(*layers, strict=True):
        assert torch.equal(layer.attention, expected.attention)
    assert len(layers[0]) == encoder.layers and len(plain.hidden_states) == len(whole.hidden_states)


@pytest.mark.parametrize("task_head", ["label", "token", "answer", "choice"])
@pytest.mark.parametrize("name", tiny_models.FAMILIES)
def test_a_pass_without_logits_has_the_same_states_and_attention(name: str, task_head: TaskHeadName) -> None:
    if name == "gpt2" and task_head == "choice":
        pytest.skip("transformers has no such class")
    encoder = with_task_head(name, task_head)
    _assert_same_without_logits(encoder, tiny_models.batch(encoder.tokenise(tiny_models.inputs())))


def test_a_pass_without_logits_does_not_run_the_language_model_head() -> None:
    encoder = load("tiny")
    batch = tiny_models.batch(encoder.tokenise(tiny_models.inputs()))
    _assert_same_without_logits(encoder, batch)
    with pytest.raises(AssertionError, match="run"), _head_that_fails(encoder):
        encoder.forward(batch)
    with _head_that_fails(encoder):
        encoder.forward(batch, logits=False)


@contextmanager
def _head_that_fails(encoder: Encoder) -> Generator[None]:
    def fail(*_: Any) -> None:
        raise AssertionError("the head was run")

    handle = cast(TaskEncoder, encoder).model.get_output_embeddings().register_forward_pre_hook(fail)
    try:
        yield
    finally:
        handle.remove()


def _changed_parts(encoder: TaskEncoder, before: TaskEncoder) -> set[str]:
    """Layers, from 1, with changed weights, and `embeddings` if they changed."""
    first_layers, second_layers = (transformer_layers(each.model.base_model) for each in (encoder, before))
    changed = {
        str(number)
        for number, (first, second) in enumerate(zip(first_layers, second_layers, strict=False), start=1)
        if any(not torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    }
    first, second = (each.model.get_input_embeddings().weight for each in (encoder, before))
    return changed if torch.equal(first, second) else changed | {"embeddings"}


SEPARATE_LAYERS = [name for name in tiny_models.FAMILIES if name != "albert"]


@pytest.mark.parametrize("name", SEPARATE_LAYERS)
def test_layers_are_removed_reinitialised_and_frozen(name: str) -> None:
    before = tiny_models.encoder(name)
    n_layers = before.layers
    every = {str(number) for number in range(1, n_layers + 1)}
    truncated = with_task_head(name, variant=LayerVariant(kept_layers=1))
    assert truncated.layers == len(transformer_layers(truncated.model.base_model)) == 1
    assert not _changed_parts(truncated, before)
    reinitialised = with_task_head(name, variant=LayerVariant(reinitialised_layers=1))
    assert _changed_parts(reinitialised, before) == {str(n_layers)}
    randomised = with_task_head(name, variant=LayerVariant(random_weights=True))
    assert _changed_parts(randomised, before) == {*every, "embeddings"}
    frozen = with_task_head(name, variant=LayerVariant(frozen_layers=1)).model
    layers: Any = transformer_layers(frozen.base_model)
    is_trained = [any(weights.requires_grad for weights in layer.parameters()) for layer in layers]
    assert is_trained == [False, *[True] * (n_layers - 1)]
    assert not frozen.get_input_embeddings().weight.requires_grad
    assert all(weights.requires_grad for weights in with_task_head(name).model.parameters())


def test_the_pooler_above_reinitialised_layers_is_reinitialised() -> None:
    before: Any = tiny_models.encoder("bert").model
    for variant, is_same in ((LayerVariant(), True), (LayerVariant(reinitialised_layers=1), False)):
        model: Any = with_task_head("bert", variant=variant).model
        assert torch.equal(model.bert.pooler.dense.weight, before.pooler.dense.weight) == is_same


def test_all_layers_may_be_removed() -> None:
    encoder = with_task_head("bert", variant=LayerVariant(kept_layers=0))
    assert encoder.layers == 0
    batch = tiny_models.batch(encoder.tokenise(tiny_models.inputs(tiny_models.TEXTS[:3])))
    assert encoder.forward(batch).logits["label"].shape == (3, 3)


def test_the_original_encoder_is_unchanged() -> None:
    before = tiny_models.encoder("bert").fingerprint
    copied = with_task_head("bert")
    with torch.no_grad():
        for weights in copied.model.parameters():
            weights.add_(1.0)
    assert tiny_models.encoder("bert").fingerprint == before


def test_a_task_head_is_seeded() -> None:
    first, same_seed, other_seed = (with_task_head("bert", seed=seed).model.classifier.weight for seed in (0, 0, 1))
    assert torch.equal(first, same_seed) and not torch.equal(first, other_seed)


@pytest.mark.parametrize(
    ("variant", "option"),
    [
        (LayerVariant(frozen_layers=3), "freeze-layers"),
        (LayerVariant(kept_layers=3), "keep-layers"),
        (LayerVariant(reinitialised_layers=3), "reinitialise-layers"),
    ],
)
def test_more_layers_than_the_model_has_are_refused(variant: LayerVariant, option: str) -> None:
    with pytest.raises(Refusal, match=rf"--{option} is 3, but .* has 2 layers"):
        with_task_head("bert", variant=variant)


def test_shared_layers_are_refused() -> None:
    with pytest.raises(Refusal, match="ALBERT"):
        with_task_head("albert", variant=LayerVariant(frozen_layers=1))


def test_gold_labels_are_matched_by_name_or_index() -> None:
    assert with_task_head("bert").labels == LABELS
    assert label_ids(LABELS, ["B", "2", "a"], "model") == [1, 2, 0]
    with pytest.raises(Refusal, match="the label d, which is no class of model"):
        label_ids(LABELS, ["a", "d"], "model")
