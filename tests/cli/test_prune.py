"""`bertology prune`: a smaller model with the outputs of the full model with those heads set to zero."""

from __future__ import annotations

import json
from pathlib import Path

import torch

import tiny_models
from bertology.encoder.attention_hook import Gates
from bertology.encoder.load import load
from bertology.encoder.pruning import PrunedEncoder
from command import bertology


def test_a_pruned_model_is_smaller_and_equals_the_gated_model(tmp_path: Path) -> None:
    folder = str(tiny_models.directory("bert", "ForMaskedLM"))
    completed = bertology("prune", folder, "--heads", "1-2, 2-1,2-4", "-o", str(tmp_path / "small"), "--json")
    assert completed.status == 0, completed.err
    assert "Removed 3 of 8 heads" in completed.err
    summary = json.loads(completed.out)
    assert (summary["removed"], summary["heads"], summary["model"]) == (3, 8, str(tmp_path / "small"))
    pruned, full = load(summary["model"]), tiny_models.encoder("bert", "ForMaskedLM")
    assert isinstance(pruned, PrunedEncoder)
    saved = sum(weights.nbytes for weights in full.model.parameters()) - summary["bytes_after"]
    assert (
        saved == summary["bytes_before"] - summary["bytes_after"] == 3 * 4 * (4 * 32 * 8 + 3 * 8)
    )  # four weight matrices and three biases per head
    scale = torch.ones(2, 4)
    scale[0, 1] = scale[1, 0] = scale[1, 3] = 0
    batch = tiny_models.batch(full.tokenise(tiny_models.inputs()[:3]))
    with torch.no_grad():
        logits = pruned.forward(batch).logits["mlm"]
        expected = full.with_gates(Gates(scale=scale)).forward(batch).logits["mlm"]
    mask = batch.attention_mask.bool()
    torch.testing.assert_close(logits[mask], expected[mask], atol=1e-5, rtol=1e-5)


def test_without_json_the_directory_is_printed(tmp_path: Path) -> None:
    folder, pruned = str(tiny_models.directory("bert", "ForMaskedLM")), tmp_path / "small"
    completed = bertology("prune", folder, "--heads", "1-1", "-o", str(pruned))
    assert completed.status == 0 and completed.out.strip() == str(pruned)
    repeated = bertology("prune", folder, "--heads", "1-1", "-o", str(pruned))
    assert repeated.status == 2 and repeated.out == "" and "already exists" in repeated.err


def test_heads_that_cannot_be_removed_are_refused(tmp_path: Path) -> None:
    bert, mpnet = (str(tiny_models.directory(name, "ForMaskedLM")) for name in ("bert", "mpnet"))
    for model, heads, mention in (
        (bert, "3-1", "from 1-1 to 2-4"),
        (bert, "0-1", "from 1-1 to 2-4"),
        (bert, "first", "'first'"),
        (bert, "", "names the head ''"),
        (mpnet, "1-1", "share weights"),
        ("random-vectors:8", "1-1", "no attention heads"),
    ):
        completed = bertology("prune", model, "--heads", heads, "-o", str(tmp_path / "small"))
        assert completed.status == 2 and completed.out == "", completed
        assert mention in completed.err and "Traceback" not in completed.err
    assert not (tmp_path / "small").exists()
