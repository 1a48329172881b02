"""A pruned model equals the model with gates at 0, is smaller, and loads here and in plain transformers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor

import tiny_models
from bertology.encoder.attention_hook import Gates
from bertology.encoder.encoder import TaskEncoder
from bertology.encoder.layer_variants import LayerVariant
from bertology.encoder.load import load
from bertology.encoder.pruning import HeadMask, PrunedEncoder, prune, save_pruned, zero_heads
from bertology.encoder.task_heads import add_task_head
from bertology.errors import Refusal

PRUNABLE = ("bert", "roberta", "electra", "distilbert")
UNSHRINKABLE = ("mpnet", "deberta-v2", "modernbert", "gpt2")
UNEVEN = np.array([[True, False, True, False], [False, False, True, False]])
FULL_LAYER = np.array([[True, False, True, True], [False, False, False, False]])
NO_HEADS = np.zeros((2, 4), np.bool_)


def _last_states(encoder: TaskEncoder) -> Tensor:
    batch = tiny_models.batch(encoder.tokenise(tiny_models.inputs()[:4]))
    with torch.inference_mode():
        return encoder.forward(batch, hidden=True).hidden_states[-1][batch.attention_mask.bool()]


def _n_parameters(encoder: TaskEncoder) -> int:
    return sum(weights.numel() for weights in encoder.model.parameters())


@pytest.mark.parametrize("name", PRUNABLE)
@pytest.mark.parametrize("kept_heads", [UNEVEN, FULL_LAYER, NO_HEADS], ids=["uneven", "a full layer", "all"])
def test_outputs_equal_those_with_gates_at_zero(name: str, kept_heads: HeadMask) -> None:
    encoder = tiny_models.encoder(name)
    gated = encoder.with_gates(Gates(scale=torch.from_numpy(kept_heads).float()))
    states = _last_states(prune(encoder, kept_heads))
    torch.testing.assert_close(states, _last_states(gated), atol=1e-5, rtol=1e-5)
    assert float((states - _last_states(encoder)).abs().max()) > 1e-2


@pytest.mark.parametrize("name", PRUNABLE)
def test_the_weights_of_pruned_heads_are_removed(name: str) -> None:
    encoder = tiny_models.encoder(name)
    before = _n_parameters(encoder)
    size = tiny_models.WIDTH // tiny_models.HEADS
    # A head has rows in the query, key and value projections with their biases, and columns in the output projection.
    removed = int((~UNEVEN).sum()) * size * (4 * tiny_models.WIDTH + 3)
    assert _n_parameters(prune(encoder, UNEVEN)) == before - removed
    assert _n_parameters(encoder) == before


@pytest.mark.parametrize("name", PRUNABLE)
@pytest.mark.parametrize("kept_heads", [UNEVEN, FULL_LAYER, NO_HEADS], ids=["uneven", "a full layer", "all"])
def test_a_saved_model_is_restored_by_load(name: str, kept_heads: HeadMask, tmp_path: Path) -> None:
    full = tiny_models.encoder(name, "ForMaskedLM")
    pruned = prune(full, kept_heads)
    save_pruned(full, kept_heads, tmp_path)
    restored = load(str(tmp_path))
    assert isinstance(restored, PrunedEncoder)
    torch.testing.assert_close(_last_states(restored), _last_states(pruned), atol=0, rtol=0)
    assert _n_parameters(restored) == _n_parameters(pruned)
    assert restored.fingerprint == pruned.fingerprint != full.fingerprint


def test_task_heads_and_tied_weights_are_kept(tmp_path: Path) -> None:
    encoder = load("tiny")
    assert isinstance(encoder, TaskEncoder)
    save_pruned(encoder, UNEVEN, tmp_path)
    restored = load(str(tmp_path))
    batch = tiny_models.batch(encoder.tokenise(tiny_models.inputs()[:3]))
    gated = encoder.with_gates(Gates(scale=torch.from_numpy(UNEVEN).float()))
    with torch.inference_mode():
        actual, expected = restored.forward(batch).logits, gated.forward(batch).logits
        for task_head in ("mlm", "nsp"):
            torch.testing.assert_close(actual[task_head], expected[task_head], atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", (*PRUNABLE, *UNSHRINKABLE))
def test_plain_transformers_gives_the_outputs_of_the_gated_model(name: str, tmp_path: Path) -> None:
    encoder = tiny_models.encoder(name, "ForSequenceClassification")
    kept_heads = np.resize(UNEVEN, (encoder.layers, encoder.heads))
    save_pruned(encoder, kept_heads, tmp_path)
    plain = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    batch = tiny_models.batch(encoder.tokenise(tiny_models.inputs()[:4]))
    # GPT-2 finds the last token by the padding id.
    padded = batch.input_ids.masked_fill(batch.attention_mask == 0, plain.config.pad_token_id)
    inputs = {"input_ids": padded, "attention_mask": batch.attention_mask}
    gated = encoder.with_gates(Gates(scale=torch.from_numpy(kept_heads).float()))
    with torch.inference_mode():
        expected = gated.forward(batch).logits["label"]
        torch.testing.assert_close(plain(**inputs).logits, expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(load(str(tmp_path)).forward(batch).logits["label"], expected, atol=1e-5, rtol=1e-5)
        assert float((encoder.forward(batch).logits["label"] - expected).abs().max()) > 1e-3


def test_removed_heads_stay_removed_if_the_model_is_trained_further() -> None:
    encoder = tiny_models.encoder("bert", "ForSequenceClassification")
    model = zero_heads(encoder, UNEVEN).model.train().requires_grad_(True)
    batch = tiny_models.batch(encoder.tokenise(tiny_models.inputs()[:4]))
    model(input_ids=batch.input_ids, labels=torch.tensor([0, 1, 0, 1])).loss.backward()
    attention = model.bert.encoder.layer[0].attention
    size = tiny_models.WIDTH // tiny_models.HEADS
    for gradient in (attention.self.value.weight.grad, attention.output.dense.weight.grad.T):
        by_head = gradient.abs().sum(1).view(tiny_models.HEADS, size).sum(1)
        assert (by_head > 0).tolist() == UNEVEN[0].tolist()


@pytest.mark.parametrize("name", UNSHRINKABLE)
def test_families_whose_heads_share_weights_or_positions_cannot_be_shrunk(name: str) -> None:
    encoder = tiny_models.encoder(name)
    with pytest.raises(Refusal, match="share weights or positions"):
        prune(encoder, np.resize(UNEVEN, (encoder.layers, encoder.heads)))


def test_layers_with_shared_weights_are_refused() -> None:
    for remove in (prune, zero_heads):
        with pytest.raises(Refusal, match="separate weights"):
            remove(tiny_models.encoder("albert"), UNEVEN)


def test_a_pruned_model_refuses_recording_gates_pruning_and_task_heads() -> None:
    pruned = prune(tiny_models.encoder("bert"), UNEVEN)
    batch = tiny_models.batch(pruned.tokenise(tiny_models.inputs()[:1]))
    with pytest.raises(Refusal, match="cannot be recorded"):
        pruned.forward(batch, on_layer=lambda _: None)
    with pytest.raises(Refusal, match="cannot be gated"):
        pruned.with_gates(Gates(scale=torch.ones(2, 4)))
    with pytest.raises(Refusal, match="already pruned"):
        prune(pruned, UNEVEN)
    with pytest.raises(Refusal, match="is pruned"):
        add_task_head(pruned, "label", ("a", "b"), variant=LayerVariant(), seed=0)
    assert pruned.with_gates(None) is pruned


def test_a_randomised_pruned_model_lacks_the_same_heads() -> None:
    pruned = prune(tiny_models.encoder("bert"), UNEVEN)
    randomised = pruned.randomised(seed=1)
    assert isinstance(randomised, PrunedEncoder)
    assert _n_parameters(randomised) == _n_parameters(pruned)


def test_a_mask_of_another_shape_is_refused() -> None:
    with pytest.raises(Refusal, match="2 layers and 4 heads"):
        prune(tiny_models.encoder("bert"), UNEVEN.T)


@pytest.mark.parametrize(
    ("removed_heads", "mention"),
    [
        ({"0": [0]}, "weights are not zero"),
        ({"5": [0]}, "does not list"),
        ({"0": [9]}, "does not list"),
        ([1], "does not list"),
    ],
)
def test_an_inconsistent_folder_is_refused(removed_heads: object, mention: str, tmp_path: Path) -> None:
    save_pruned(tiny_models.encoder("bert"), UNEVEN, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    assert config["removed_heads"] == {"0": [1, 3], "1": [0, 1, 3]}
    (tmp_path / "config.json").write_text(json.dumps(config | {"removed_heads": removed_heads}), "utf-8")
    with pytest.raises(Refusal, match=mention):
        load(str(tmp_path))
