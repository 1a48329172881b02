"""Derived encoders equal the interventions that exist, compose in any order, and leave the original as it was."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import tiny_models
from bertology.analyses.evaluation.ablation import AblationMethod, HeadAblation, prepare_ablation
from bertology.analyses.evaluation.evaluation import prepare_evaluation
from bertology.analyses.registry import get
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.read import load_corpus
from bertology.encoder.attention_hook import Gates, LayerActivations
from bertology.encoder.encoder import Head, describe_changes
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.layer_variants import transformer_layers
from bertology.encoder.load import load
from bertology.encoder.resumable_encoder import make_resumable
from bertology.encoder.task_heads import save_pretrained
from bertology.errors import Refusal
from tiny_models import ALL_FAMILIES, TEXTS

SEPARATE_LAYERS = [name for name in ALL_FAMILIES if name != "albert"]


@cache
def double_encoder(name: str, kind: str = "Model") -> HuggingFaceEncoder:
    model = tiny_models.model(name, kind)
    # DeBERTa computes its positions in single precision, and older versions of T5 their softmax.
    return tiny_models.wrap_model(model if name in {"deberta-v2", "t5", "mt5"} else model.double(), name)


def states(encoder: HuggingFaceEncoder) -> Tensor:
    """The last hidden states of all tokens of the texts."""
    batch = encoder.batch(TEXTS)
    with torch.inference_mode():
        return encoder.forward(batch, hidden=True).hidden_states[-1][batch.attention_mask.bool()]


def assert_same(first: HuggingFaceEncoder, second: HuggingFaceEncoder) -> None:
    expected = states(second)
    torch.testing.assert_close(states(first), expected, atol=1e-6 if expected.dtype == torch.float64 else 1e-5, rtol=0)


def mask_of(encoder: HuggingFaceEncoder, *heads: str) -> Tensor:
    mask = torch.zeros(encoder.layers, encoder.heads, dtype=torch.bool)
    for head in heads:
        mask[Head.parse(head)] = True
    return mask


@pytest.mark.parametrize("name", SEPARATE_LAYERS)
def test_changed_heads_equal_gates(name: str) -> None:
    encoder = double_encoder(name)
    chosen = mask_of(encoder, "1-2", "2-4")
    original = states(encoder)
    assert_same(encoder.without("1-2", "2-4"), encoder.with_gates(Gates(scale=(~chosen).double())))
    assert_same(encoder.keeping("1-2", "2-4"), encoder.with_gates(Gates(scale=chosen.double())))
    assert_same(encoder.uniform("1-2", "2-4"), encoder.with_gates(Gates(uniform=chosen)))
    for changed in (encoder.without("1-2"), encoder.keeping("1-2"), encoder.uniform("1-2")):
        assert (states(changed) - original).abs().max() > 1e-3
    assert torch.equal(states(encoder), original)


@pytest.mark.parametrize("order", [(1,), (2, 1), (1, 1, 2), (1, 2, 2)])
@pytest.mark.parametrize("name", SEPARATE_LAYERS)
@torch.no_grad()
def test_other_layers_equal_a_resumed_pass(name: str, order: tuple[int, ...]) -> None:
    encoder = double_encoder(name, ALL_FAMILIES[name].kinds[-1])
    if name in {"t5", "mt5"} and order in {(2, 1), (1, 1, 2)}:
        with pytest.raises(Refusal, match=r"Layer 1 of M?T5EncoderModel holds weights that all layers use"):
            encoder.with_layers(*order)
        return
    reordered = encoder.with_layers(*order)
    windows = tuple(encoder.attention_windows[layer - 1] for layer in order) if encoder.attention_windows else ()
    assert (reordered.layers, reordered.attention_windows) == (len(order), windows if any(windows) else ())
    batch = encoder.batch(TEXTS[:3])
    resumable = make_resumable(encoder)
    assert resumable is not None
    expected = resumable.resume_reordered(resumable.trace(batch), [layer - 1 for layer in order]).logits
    for task_head, logits in reordered.forward(batch).logits.items():
        is_per_token = logits.shape[:2] == batch.input_ids.shape
        rows = batch.attention_mask.bool() if is_per_token else slice(None)
        tolerance = 1e-6 if logits.dtype == torch.float64 else 1e-5
        torch.testing.assert_close(logits[rows], expected[task_head][rows], atol=tolerance, rtol=0)


@pytest.mark.parametrize("order", [(1,), (1, 2, 2)])
@pytest.mark.parametrize("name", ["bert", *tiny_models.CAUSAL_AND_T5])
@torch.no_grad()
def test_other_layers_equal_a_list_of_layers_changed_in_transformers(name: str, order: tuple[int, ...]) -> None:
    encoder = double_encoder(name)
    reference = tiny_models.reference(encoder).to(next(encoder.model.parameters()).dtype)
    layers = transformer_layers(reference)
    for module in list(reference.modules()):
        for child_name, child in module.named_children():
            if child is layers:
                setattr(module, child_name, torch.nn.ModuleList([layers[layer - 1] for layer in order]))
    reference.config.num_hidden_layers = len(order)
    if getattr(reference.config, "layer_types", None):
        reference.config.layer_types = [reference.config.layer_types[layer - 1] for layer in order]
    batch = encoder.batch(TEXTS[3:4])
    cached = {"use_cache": False} if encoder.causal else {}
    expected = reference(batch.input_ids, attention_mask=batch.attention_mask, **cached).last_hidden_state[0]
    actual = encoder.with_layers(*order).forward(batch, hidden=True).hidden_states[-1][0]
    # The reference takes its softmax in single precision.
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["bert", "modernbert", "gpt2", "deberta-v2"])
def test_changes_compose_in_any_order(name: str) -> None:
    encoder = double_encoder(name)
    first = encoder.with_layers(2, 1).without("2-3").uniform("1-2")
    second = encoder.uniform("2-2").without("1-3").with_layers(2, 1)
    third = encoder.without("1-3").with_layers(2, 1).uniform("1-2")
    assert_same(first, second)
    assert_same(first, third)
    assert len({first.fingerprint, second.fingerprint, third.fingerprint}) == 1
    assert len({first.name, second.name, third.name}) == 1
    once, twice = encoder.without("1-1", "2-2"), encoder.without("1-1").without("2-2")
    assert (once.name, once.fingerprint) == (twice.name, twice.fingerprint)


def test_the_copies_of_a_repeated_layer_are_changed_apart() -> None:
    encoder = double_encoder("bert").with_layers(1, 1)
    assert (states(encoder.without("1-1")) - states(encoder.without("2-1"))).abs().max() > 1e-3
    gated = encoder.with_gates(Gates(scale=(~mask_of(encoder, "2-1")).double()))
    assert_same(encoder.without("2-1"), gated)
    assert_same(encoder.without("1-1", "2-1"), double_encoder("bert").without("1-1").with_layers(1, 1))


def test_names_and_changes_say_what_was_done() -> None:
    encoder = load("tiny")
    assert isinstance(encoder, HuggingFaceEncoder)
    for derived, name, changes in (
        (encoder.without("2-1", "1-3"), "tiny without 1-3, 2-1", {"heads set to zero": ["1-3", "2-1"]}),
        (encoder.uniform("1-3"), "tiny with uniform 1-3", {"heads with uniform attention": ["1-3"]}),
        (encoder.with_layers(2), "tiny with layers 2", {"layers": ["2"]}),
        (
            encoder.keeping("2-4").with_layers(2),
            "tiny with layers 2 keeping 1-4",
            {"layers": ["2"], "heads set to zero": ["1-1", "1-2", "1-3"]},
        ),
    ):
        assert (derived.name, describe_changes(derived)) == (name, changes)
    assert encoder.with_layers(1, 2).name == "tiny"
    fingerprints = {
        derived.fingerprint
        for derived in (encoder, encoder.without("1-1"), encoder.without("1-2"), encoder.uniform("1-1"))
    }
    assert len(fingerprints) == 4
    assert describe_changes(encoder) == {}


@pytest.mark.parametrize("heads", [("3-1",), ("1-5",), ("x",), ("0-1",), (), (3,), (None,)])
def test_heads_that_do_not_exist_are_refused(heads: tuple[str, ...]) -> None:
    encoder = tiny_models.encoder("bert")
    for derive in (encoder.without, encoder.uniform, encoder.keeping):
        with pytest.raises(Refusal, match=r"has no head|No head was named"):
            derive(*heads)


@pytest.mark.parametrize("layers", [(0,), (3,), (), ("1",), (True,)])
def test_layers_that_do_not_exist_are_refused(layers: tuple[int, ...]) -> None:
    with pytest.raises(Refusal, match=r"has no layer|No layer was named"):
        tiny_models.encoder("bert").with_layers(*layers)


def test_layers_that_share_their_weights_are_refused() -> None:
    with pytest.raises(Refusal, match="does not have 2 layers with separate weights"):
        tiny_models.encoder("albert").without("1-1")


def test_the_untrained_model_has_the_same_changes() -> None:
    encoder = tiny_models.encoder("bert").without("1-2").uniform("2-1")
    random = encoder.randomised()
    assert describe_changes(random) == describe_changes(encoder)
    attention: list[Tensor] = []
    values: list[Tensor] = []

    def read(layer: LayerActivations) -> None:
        assert layer.head_outputs is not None
        attention.append(layer.attention)
        values.append(layer.head_outputs)

    with torch.no_grad():
        random.forward(random.batch(TEXTS[:1]), on_layer=read)
    assert float(values[0][:, 1].abs().max()) == 0 and float(values[0][:, 0].abs().max()) > 0
    assert float(attention[1][:, 0].std()) < 1e-6 < float(attention[1][:, 1].std())


def test_a_derived_model_is_saved_with_its_changes(tmp_path: Path) -> None:
    encoder = tiny_models.encoder("bert", "ForMaskedLM")
    derived = encoder.without("2-1").with_layers(2, 2, 1)
    save_pretrained(derived, tmp_path)
    loaded = load(str(tmp_path))
    batch = encoder.batch(TEXTS[:1])
    with torch.no_grad():
        expected, actual = (model.forward(batch).logits["mlm"] for model in (derived, loaded))
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)
    assert describe_changes(loaded) == {"removed heads": ["1-1", "2-1"]}
    with pytest.raises(Refusal, match="which no checkpoint can hold"):
        save_pretrained(encoder.uniform("1-1"), tmp_path)


@pytest.mark.parametrize("method", ["zero", "uniform"])
@torch.no_grad()
def test_an_ablation_of_a_derived_encoder_adds_to_its_changes(method: AblationMethod) -> None:
    encoder = tiny_models.encoder("bert", "ForMaskedLM")
    derived = encoder.without("1-2").uniform("2-3")
    evaluation = prepare_evaluation(derived, load_corpus("english"), sample_size=6)
    mask = np.zeros((2, 4), np.bool_)
    mask[0, :2] = True
    runners = (prepare_ablation(derived, evaluation, method, full_passes=full) for full in (False, True))
    again = derived.without("1-1") if method == "zero" else derived.uniform("1-1")
    batch = evaluation.batches[0]
    expected = batch.loss(again.forward(batch.inputs))
    for runner in runners:
        outputs = dict(runner.outputs(batch, [HeadAblation(mask)]))
        torch.testing.assert_close(batch.loss(outputs[-1]), batch.loss(derived.forward(batch.inputs)))
        torch.testing.assert_close(batch.loss(outputs[0]), expected)


@pytest.mark.parametrize(
    "analysis", ["attention/entropy", "attention/norms", "interventions/head_ablation", "interventions/layer_ablation"]
)
def test_analyses_run_on_derived_encoders_and_record_the_changes(analysis: str) -> None:
    encoder = load("tiny")
    assert isinstance(encoder, HuggingFaceEncoder)
    derived = encoder.uniform("1-1").without("2-2")
    corpus = load_corpus("english")[:8]
    result = run_analysis(get(analysis), RunInputs(corpus=corpus, encoder=derived), {})
    model = result.inputs["model"]["model"]
    assert model["name"] == "tiny without 2-2 with uniform 1-1"
    assert model["changes"] == {"heads set to zero": ["2-2"], "heads with uniform attention": ["1-1"]}
    assert (model["dtype"], model["device"]) == ("float32", "cpu")
