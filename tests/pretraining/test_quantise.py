from __future__ import annotations

import sys
from pathlib import Path

import pytest
import small
import torch
from pretraining.export import export_model
from pretraining.model import make_model
from pretraining.quantise import main, pack
from safetensors.torch import load_file

from bertology.encoder.int8_checkpoint import TENSORS, load_int8, unpack_int8


def test_rounding_is_at_most_half_a_scale_and_vectors_are_kept() -> None:
    matrix = torch.randn(20, 30, generator=torch.Generator().manual_seed(0))
    matrix[3] = 0
    vector = torch.linspace(-1, 1, 7).half()
    packed = pack({"m": matrix, "v": vector})
    assert packed["m"].dtype == torch.int8
    back = unpack_int8(packed)
    assert set(back) == {"m", "v"}
    torch.testing.assert_close(back["v"], vector, rtol=0, atol=0)
    allowed = packed["m.scale"][:, None] / 2 + 2e-3
    assert ((back["m"].float() - matrix).abs() <= allowed).all()


def test_a_packed_model_is_smaller_and_loads_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small.tokeniser(tmp_path / "tokeniser")
    model = make_model(small.recipe().shape, seed=0).eval()
    export_model(model, tmp_path / "tokeniser", tmp_path / "half")
    monkeypatch.setattr(sys, "argv", ["quantise", str(tmp_path / "half"), "-o", str(tmp_path / "packed")])
    main()
    half, packed = (tmp_path / "half" / "model.safetensors", tmp_path / "packed" / TENSORS)
    assert packed.stat().st_size < 0.75 * half.stat().st_size
    loaded = load_int8(
        tmp_path / "packed", tokeniser=tmp_path / "half", name="small", device="cpu", dtype="float32"
    ).model.eval()
    ids = torch.arange(5, 25)[None]
    with torch.inference_mode():
        before, after = model(ids).prediction_logits, loaded(ids).prediction_logits
    torch.testing.assert_close(after, before, rtol=0, atol=0.02)
    assert set(unpack_int8(load_file(packed))) == set(load_file(half))
