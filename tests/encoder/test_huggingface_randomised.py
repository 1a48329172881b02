"""`random:MODEL`: the same architecture with seeded random weights."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import tiny_models
from bertology.encoder.attention_hook import LayerActivations
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from tiny_models import FAMILIES


def _hidden_and_attention(encoder: Encoder) -> tuple[tuple[Tensor, ...], list[Tensor]]:
    activations: list[LayerActivations] = []
    batch = tiny_models.batch(encoder.tokenise(tiny_models.inputs()[:2]))
    with torch.inference_mode():
        output = encoder.forward(batch, on_layer=activations.append, hidden=True)
    return output.hidden_states, [layer.attention for layer in activations]


@pytest.mark.parametrize("name", FAMILIES)
def test_random_weights_are_seeded_and_differ_from_the_trained(name: str) -> None:
    trained = tiny_models.encoder(name)
    randomised, same_seed, other_seed = (trained.randomised(seed) for seed in (0, 0, 1))
    assert (randomised.layers, randomised.heads, randomised.width) == (trained.layers, trained.heads, trained.width)
    assert randomised.fingerprint == same_seed.fingerprint
    assert len({trained.fingerprint, randomised.fingerprint, other_seed.fingerprint}) == 3
    assert (randomised.name, other_seed.name) == (f"random:{trained.name}", f"random:{trained.name}@1")
    for first, second in zip(_hidden_and_attention(randomised)[1], _hidden_and_attention(trained)[1], strict=True):
        assert float((first - second).abs().max()) > 1e-2


def test_random_weights_do_not_depend_on_the_global_generator_and_do_not_advance_it() -> None:
    trained = tiny_models.encoder("bert")
    torch.manual_seed(1)
    first = trained.randomised(3).fingerprint
    sample = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(1), sample)
    assert trained.randomised(3).fingerprint == first


@pytest.mark.parametrize("name", FAMILIES)
def test_the_control_of_clark_et_al_keeps_the_embeddings(name: str) -> None:
    """Hidden states of layer 0 are unchanged in every family, those of all layers above are not."""
    trained = tiny_models.encoder(name)
    control = trained.randomised(0, keep_embeddings=True)
    control_states, trained_states = _hidden_and_attention(control)[0], _hidden_and_attention(trained)[0]
    torch.testing.assert_close(control_states[0], trained_states[0], atol=0, rtol=0)
    for layer in range(1, trained.layers + 1):
        assert float((control_states[layer] - trained_states[layer]).abs().max()) > 1e-1
    assert float((_hidden_and_attention(trained.randomised(0))[0][0] - trained_states[0]).abs().max()) > 1e-1
    assert control.fingerprint != trained.randomised(0).fingerprint


def test_the_prefix_random() -> None:
    path = tiny_models.directory("bert", "ForMaskedLM")
    expected = tiny_models.encoder("bert", "ForMaskedLM").randomised(4)
    loaded = load(f"random:{path}@4")
    assert (loaded.name, loaded.fingerprint) == (expected.name, expected.fingerprint)
    assert loaded.task_heads == {"mlm"}
    assert load("random:tiny").fingerprint == load("random:tiny@0").fingerprint
    assert load("random:random:tiny").layers == 2
