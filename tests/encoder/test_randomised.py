"""`random:MODEL`: the same architecture, other weights, the same ones for the same seed."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import models
from bertology.encoder.attend import LayerActivations
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from models import FAMILIES


def _hidden_and_maps(encoder: Encoder) -> tuple[tuple[Tensor, ...], list[Tensor]]:
    seen: list[LayerActivations] = []
    with torch.inference_mode():
        output = encoder.run(models.batch(encoder.tokenise(models.inputs()[:2])), on_layer=seen.append, hidden=True)
    return output.hidden, [layer.attention for layer in seen]


@pytest.mark.parametrize("name", FAMILIES)
def test_fresh_weights_are_seeded_and_differ(name: str) -> None:
    trained = models.encoder(name)
    fresh, again, other = (trained.randomised(seed) for seed in (0, 0, 1))
    assert (fresh.layers, fresh.heads, fresh.width) == (trained.layers, trained.heads, trained.width)
    assert fresh.fingerprint == again.fingerprint
    assert len({trained.fingerprint, fresh.fingerprint, other.fingerprint}) == 3
    assert (fresh.name, other.name) == (f"random:{trained.name}", f"random:{trained.name}@1")
    for ours, theirs in zip(_hidden_and_maps(fresh)[1], _hidden_and_maps(trained)[1], strict=True):
        assert float((ours - theirs).abs().max()) > 1e-2


def test_fresh_weights_do_not_depend_on_what_was_drawn_before_and_leave_it_alone() -> None:
    trained = models.encoder("bert")
    torch.manual_seed(1)
    first = trained.randomised(3).fingerprint
    drawn = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(1), drawn)
    assert trained.randomised(3).fingerprint == first


@pytest.mark.parametrize("name", FAMILIES)
def test_clarks_control_keeps_the_embeddings(name: str) -> None:
    """Layer 0 is what it was in every family, whatever its embeddings are called; no layer above is."""
    trained = models.encoder(name)
    control = trained.randomised(0, keep_embeddings=True)
    ours, theirs = _hidden_and_maps(control), _hidden_and_maps(trained)
    torch.testing.assert_close(ours[0][0], theirs[0][0], atol=0, rtol=0)
    for above in range(1, trained.layers + 1):
        assert float((ours[0][above] - theirs[0][above]).abs().max()) > 1e-1
    assert float((_hidden_and_maps(trained.randomised(0))[0][0] - theirs[0][0]).abs().max()) > 1e-1
    assert control.fingerprint != trained.randomised(0).fingerprint


def test_random_before_the_name_of_a_model() -> None:
    path = models.directory("bert", "ForMaskedLM")
    expected = models.encoder("bert", "ForMaskedLM").randomised(4)
    loaded = load(f"random:{path}@4")
    assert (loaded.name, loaded.fingerprint) == (expected.name, expected.fingerprint)
    assert loaded.outputs == {"mlm"}
    assert load("random:tiny").fingerprint == load("random:tiny@0").fingerprint
    assert load("random:random:tiny").layers == 2
