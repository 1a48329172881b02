"""`encoder.hooked` reads and replaces what plain PyTorch hooks on the modules of a transformers model do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import tiny_models
from bertology.encoder.encoder import describe_changes
from bertology.errors import Refusal
from tiny_models import ALL_FAMILIES

PLACES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    # The layers of a model, and the output projection of a layer.
    "bert": (lambda model: model.encoder.layer, lambda layer: layer.attention.output.dense),
    "gpt2": (lambda model: model.h, lambda layer: layer.attn.c_proj),
    "modernbert": (lambda model: model.layers, lambda layer: layer.attn.Wo),
    "llama": (lambda model: model.layers, lambda layer: layer.self_attn.o_proj),
}
TEXTS = ("The keys to the cabinet are on the table.", "A dog saw the lights of the small town.")


def run(encoder: Any, batch: Any) -> Tensor:
    with torch.no_grad():
        return encoder.forward(batch, hidden=True).hidden_states[-1]


def padded_ids(encoder: Any, batch: Any) -> Tensor:
    return batch.input_ids.masked_fill(batch.attention_mask == 0, encoder.model.config.pad_token_id)


@pytest.mark.parametrize("name", ALL_FAMILIES)
def test_functions_that_return_none_read_and_change_nothing(name: str) -> None:
    encoder = tiny_models.encoder(name)
    batch = encoder.batch(TEXTS)
    seen: list[tuple[str, int, tuple[int, ...]]] = []
    with encoder.hooked(
        attention=lambda x, layer: seen.append(("attention", layer, tuple(x.shape))),
        head_outputs=lambda x, layer: seen.append(("head outputs", layer, tuple(x.shape))),
        hidden=lambda x, layer: seen.append(("hidden", layer, tuple(x.shape))),
    ) as hooked:
        mask = batch.attention_mask.bool()
        torch.testing.assert_close(run(hooked, batch)[mask], run(encoder, batch)[mask], atol=1e-5, rtol=1e-5)
    n, heads = batch.input_ids.shape[1], encoder.heads
    expected: list[tuple[str, int, tuple[int, ...]]] = [("hidden", 0, (2, n, encoder.width))]
    for layer in range(1, encoder.layers + 1):
        expected.append(("attention", layer, (2, heads, n, n)))
        expected.append(("head outputs", layer, (2, heads, n, encoder.width // heads)))
        expected.append(("hidden", layer, (2, n, encoder.width)))
    assert seen == expected


@pytest.mark.parametrize("name", PLACES)
def test_patched_hidden_states_equal_those_of_plain_hooks(name: str) -> None:
    """Activation patching: the states of one token come from another text."""
    encoder = tiny_models.encoder(name)
    batch = encoder.batch(TEXTS)
    for patched_layer in (1, 2):
        clean: dict[int, Tensor] = {}

        def keep(states: Tensor, layer: int, kept: dict[int, Tensor] = clean) -> None:
            kept[layer] = states.clone()

        with encoder.hooked(hidden=keep) as hooked:
            run(hooked, batch)

        def patch(states: Tensor, layer: int, at: int = patched_layer, source: dict[int, Tensor] = clean) -> Any:
            if layer != at:
                return None
            states = states.clone()
            states[1, 4] = source[layer][0, 4]
            return states

        with encoder.hooked(hidden=patch) as hooked:
            actual = run(hooked, batch)
        reference = tiny_models.reference(encoder)
        layer_module = PLACES[name][0](reference)[patched_layer - 1]

        def plain_patch(module: Any, args: Any, output: Any) -> Any:
            states = (output[0] if isinstance(output, tuple) else output).clone()
            states[1, 4] = states[0, 4]
            return (states, *output[1:]) if isinstance(output, tuple) else states

        layer_module.register_forward_hook(plain_patch)
        with torch.no_grad():
            expected = reference(padded_ids(encoder, batch), attention_mask=batch.attention_mask).last_hidden_state
        mask = batch.attention_mask.bool()
        torch.testing.assert_close(actual[mask], expected[mask], atol=1e-5, rtol=1e-5)
        assert (actual - run(encoder, batch))[1].abs().max() > 1e-3
        assert torch.allclose(actual[0][mask[0]], run(encoder, batch)[0][mask[0]], atol=1e-5)


@pytest.mark.parametrize("name", PLACES)
def test_replaced_head_outputs_equal_those_of_plain_hooks(name: str) -> None:
    encoder = tiny_models.encoder(name)
    batch = encoder.batch(TEXTS)

    def swap(outputs: Tensor, layer: int) -> Tensor | None:
        if layer != 2:
            return None
        outputs = outputs.clone()
        outputs[:, 1] = outputs[[1, 0], 1]
        return outputs

    with encoder.hooked(head_outputs=swap) as hooked:
        actual = run(hooked, batch)
    reference = tiny_models.reference(encoder)
    layers, projection = PLACES[name]
    size = encoder.width // encoder.heads

    def plain_swap(module: Any, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        outputs = args[0].clone()
        columns = slice(size, 2 * size)
        outputs[..., columns] = outputs[[1, 0]][..., columns]
        return (outputs, *args[1:])

    projection(layers(reference)[1]).register_forward_pre_hook(plain_swap)
    with torch.no_grad():
        expected = reference(padded_ids(encoder, batch), attention_mask=batch.attention_mask).last_hidden_state
    mask = batch.attention_mask.bool()
    torch.testing.assert_close(actual[mask], expected[mask], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["bert", "modernbert", "t5", "qwen2"])
def test_replaced_attention_equals_uniform_heads(name: str) -> None:
    encoder = tiny_models.encoder(name)
    batch = encoder.batch(TEXTS[:1])

    def spread(attention: Tensor, layer: int) -> Tensor | None:
        if layer != 1:
            return None
        visible = (attention > 0).to(attention)
        attention = attention.clone()
        attention[:, 2] = (visible / visible.sum(-1, keepdim=True))[:, 2]
        return attention

    with encoder.hooked(attention=spread) as hooked:
        torch.testing.assert_close(run(hooked, batch), run(encoder.uniform("1-3"), batch), atol=1e-5, rtol=1e-5)


def test_replaced_embeddings_are_the_input_of_the_first_layer() -> None:
    encoder = tiny_models.encoder("bert")
    batch = encoder.batch((TEXTS[0], TEXTS[0]))
    batch.input_ids[1, 2] += 1
    assert (run(encoder, batch)[0] - run(encoder, batch)[1]).abs().max() > 1e-3
    with encoder.hooked(hidden=lambda states, layer: states[[0, 0]] if layer == 0 else None) as hooked:
        actual = run(hooked, batch)
    torch.testing.assert_close(actual[1], actual[0])


def test_gradients_reach_what_a_hook_returns() -> None:
    encoder = tiny_models.encoder("bert", "ForMaskedLM")
    batch = encoder.batch(TEXTS)
    direction = torch.zeros(encoder.width, requires_grad=True)
    with encoder.hooked(hidden=lambda states, layer: states + direction if layer == 1 else None) as hooked:
        hooked.forward(batch).logits["mlm"].sum().backward()
    assert direction.grad is not None and float(direction.grad.abs().max()) > 0


def test_hooks_end_with_their_block_and_have_a_fingerprint_of_their_own() -> None:
    encoder = tiny_models.encoder("bert")
    batch = encoder.batch(TEXTS)
    fingerprints = {encoder.fingerprint}
    with encoder.hooked(attention=lambda attention, layer: None) as first:
        assert first.fingerprint == first.fingerprint
        fingerprints.add(first.fingerprint)
    with encoder.hooked(attention=lambda attention, layer: None) as hooked:
        fingerprints.add(hooked.fingerprint)
        assert describe_changes(hooked) == {"hooks": ["attention"]}
    assert len(fingerprints) == 3
    with pytest.raises(Refusal, match="was used after the block of its hooks"):
        hooked.forward(batch)


def test_wrong_hooks_are_refused() -> None:
    encoder = tiny_models.encoder("bert")
    wrong: Any = "attention"
    for hooks in ({}, {"attention": wrong}):
        with pytest.raises(Refusal, match=r"No hook was given|given attention as str"), encoder.hooked(**hooks):
            pass
    batch = encoder.batch(TEXTS)
    with (
        encoder.hooked(hidden=lambda states, layer: states[0]) as hooked,
        pytest.raises(Refusal, match=r"The hook of 'hidden' returned .* for layer 0"),
    ):
        hooked.forward(batch)
