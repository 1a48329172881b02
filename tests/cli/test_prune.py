"""`bertology prune`: a smaller model that answers as the whole one does with those heads at 0."""

from __future__ import annotations

import json
from pathlib import Path

import torch

import models
from bertology.encoder.attend import Gates
from bertology.encoder.load import load
from bertology.encoder.pruning import PrunedEncoder
from command import bertology


def test_a_smaller_model_with_the_same_answers(tmp_path: Path) -> None:
    folder = str(models.directory("bert", "ForMaskedLM"))
    ended = bertology("prune", folder, "--heads", "1-2, 2-1,2-4", "-o", str(tmp_path / "small"), "--json")
    assert ended.status == 0, ended.err
    assert "3 of 8 heads cut out" in ended.err
    told = json.loads(ended.out)
    assert (told["removed"], told["heads"], told["model"]) == (3, 8, str(tmp_path / "small"))
    pruned, whole = load(told["model"]), models.encoder("bert", "ForMaskedLM")
    assert isinstance(pruned, PrunedEncoder)
    cut = sum(weights.nbytes for weights in whole.model.parameters()) - told["bytes after"]
    assert cut == told["bytes before"] - told["bytes after"] == 3 * 4 * (4 * 32 * 8 + 3 * 8)  # weights, and biases into
    scale = torch.ones(2, 4)
    scale[0, 1] = scale[1, 0] = scale[1, 3] = 0
    batch = models.batch(whole.tokenise(models.inputs()[:3]))
    with torch.no_grad():
        found, expected = pruned.run(batch).logits["mlm"], whole.gated(Gates(scale=scale)).run(batch).logits["mlm"]
    real = batch.mask.bool()
    torch.testing.assert_close(found[real], expected[real], atol=1e-5, rtol=1e-5)


def test_without_json_the_folder_is_printed(tmp_path: Path) -> None:
    folder, made = str(models.directory("bert", "ForMaskedLM")), tmp_path / "small"
    ended = bertology("prune", folder, "--heads", "1-1", "-o", str(made))
    assert ended.status == 0 and ended.out.strip() == str(made)
    again = bertology("prune", folder, "--heads", "1-1", "-o", str(made))
    assert again.status == 2 and again.out == "" and "is there already" in again.err


def test_what_cannot_be_cut_out_is_refused(tmp_path: Path) -> None:
    bert, mpnet = (str(models.directory(name, "ForMaskedLM")) for name in ("bert", "mpnet"))
    for model, heads, mention in (
        (bert, "3-1", "from 1-1 to 2-4"),
        (bert, "0-1", "from 1-1 to 2-4"),
        (bert, "first", "'first'"),
        (bert, "", "names the head ''"),
        (mpnet, "1-1", "share weights"),
        ("random-vectors:8", "1-1", "no heads to cut out"),
    ):
        ended = bertology("prune", model, "--heads", heads, "-o", str(tmp_path / "small"))
        assert ended.status == 2 and ended.out == "", ended
        assert mention in ended.err and "Traceback" not in ended.err
    assert not (tmp_path / "small").exists()
