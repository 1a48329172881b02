from __future__ import annotations

import sys
from pathlib import Path

import pytest
import small_pretraining
import torch
from pretraining.export import export_model
from pretraining.model import make_model
from pretraining.quantise import main, quantise
from safetensors.torch import load_file

from bertology.encoder.int8_checkpoint import TENSORS, load_int8, unpack_int8


def test_rounding_errors_are_at_most_half_a_scale_and_vectors_are_unchanged() -> None:
    matrix = torch.randn(20, 30, generator=torch.Generator().manual_seed(0))
    matrix[3] = 0
    vector = torch.linspace(-1, 1, 7).half()
    quantised = quantise({"m": matrix, "v": vector})
    assert quantised["m"].dtype == torch.int8
    restored = unpack_int8(quantised)
    assert set(restored) == {"m", "v"}
    torch.testing.assert_close(restored["v"], vector, rtol=0, atol=0)
    max_error = quantised["m.scale"][:, None] / 2 + 2e-3
    assert ((restored["m"].float() - matrix).abs() <= max_error).all()


def test_a_quantised_model_is_smaller_and_can_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_pretraining.tokeniser(tmp_path / "tokeniser")
    model = make_model(small_pretraining.pretraining_config().model, seed=0).eval()
    export_model(model, tmp_path / "tokeniser", tmp_path / "half")
    monkeypatch.setattr(sys, "argv", ["quantise", str(tmp_path / "half"), "-o", str(tmp_path / "int8")])
    main()
    half_file, int8_file = (tmp_path / "half" / "model.safetensors", tmp_path / "int8" / TENSORS)
    assert int8_file.stat().st_size < 0.75 * half_file.stat().st_size
    loaded = load_int8(
        tmp_path / "int8", tokeniser=tmp_path / "half", name="small", device="cpu", dtype="float32"
    ).model.eval()
    ids = torch.arange(5, 25)[None]
    with torch.inference_mode():
        before, after = model(ids).prediction_logits, loaded(ids).prediction_logits
    torch.testing.assert_close(after, before, rtol=0, atol=0.02)
    assert set(unpack_int8(load_file(int8_file))) == set(load_file(half_file))
