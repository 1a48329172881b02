"""The one relevant token of a planted model ranks first; gradients and ablations equal an independent computation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

import planted
import tiny_models
from bertology.analyses.attention.attribution_agreement.analysis import (
    CONTROLS,
    METHODS,
    REFERENCES,
    _affordable_sample_size,  # pyright: ignore[reportPrivateUsage]
    attribution_agreement,
)
from bertology.analyses.attention.attribution_agreement.token_relevance import (
    RelevanceConfig,
    RelevanceTarget,
    TokenRelevance,
    resolve_target,
    token_relevances,
)
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.numerics.maximum_flow import layered_flows
from bertology.recording.plan import MAX_SAMPLE_SIZE, MIN_SAMPLE_SIZE
from bertology.recording.recorder import record
from bertology.results.illustrations import Examples
from bertology.results.shapes import LayerCurve, Table

CORPUS = planted.make_corpus(*tiny_models.TEXTS)
ATTENTION_METHODS = ("raw attention", "rollout", "flow")


def make_config(target: RelevanceTarget, layers: int = 2, **overrides: Any) -> RelevanceConfig:
    defaults: dict[str, Any] = {
        "residual_weight": 0.5,
        "fusion": "mean",
        "layers": (layers,),
        "n_directions": 4,
        "sample_size": 0,
        "max_length": 64,
        "seed": 0,
    }
    return RelevanceConfig(target, **{**defaults, **overrides})


def relevances(
    model: Encoder, target: RelevanceTarget, corpus: Corpus = CORPUS, **overrides: Any
) -> list[TokenRelevance]:
    unordered = token_relevances(record(model, corpus, []), model, make_config(target, model.layers, **overrides))
    return sorted(unordered, key=lambda relevance: relevance.input_index)


def run(model: Encoder, **options: Any) -> Table | LayerCurve | Examples:
    data = attribution_agreement(record(model, CORPUS, []), None, model, **options)
    assert isinstance(data, Table | LayerCurve | Examples)
    return data


WORD = "are"
ONE_WORD = planted.make_corpus(
    "the keys are on the table", "are the lights on", "at last the lights of the town are on"
)


def one_word_model() -> HuggingFaceEncoder:
    """A BERT whose first layer attends to one word, and whose second layer attends uniformly, without effect.

    Without positions and types a state is its word. Queries are one constant vector; the key of a state is its
    similarity to that word. Only that word and [CLS] itself can change the class.
    """
    model = tiny_models.model("bert", "ForSequenceClassification")
    with torch.no_grad():
        embeddings = model.bert.embeddings
        embeddings.position_embeddings.weight.zero_()
        embeddings.token_type_embeddings.weight.zero_()
        states = embeddings.LayerNorm(embeddings.word_embeddings.weight)
        target_state = states[tiny_models.hf_tokenizer("bert").convert_tokens_to_ids(WORD)]
        first, second = model.bert.encoder.layer
        for attention in (first.attention.self, second.attention.self):
            for weight in (attention.query.weight, attention.key.weight, attention.key.bias):
                weight.zero_()
        first.attention.self.query.bias.fill_(1.0)
        first.attention.self.key.weight.copy_((target_state - states.mean(0)).expand(tiny_models.WIDTH, -1) * 0.2)
        second.attention.output.dense.weight.zero_()
    return tiny_models.wrap_model(model, "bert")


def test_the_relevant_token_ranks_first_by_all_methods_but_raw_attention() -> None:
    model = one_word_model()
    word_id = tiny_models.hf_tokenizer("bert").convert_tokens_to_ids(WORD)
    for relevance in relevances(model, "class", corpus=ONE_WORD):
        values = relevance.by_method | {name: rows[0] for name, rows in relevance.by_layer.items()}
        for name in ("input ablation", "gradient", "gradient x input", "rollout", "flow"):
            assert relevance.ids[relevance.positions[values[name].argmax()]] == word_id, name
        for name in ("input ablation", "gradient"):
            assert values[name].max() > 0.9 * values[name].sum(), name
        np.testing.assert_allclose(values["raw attention"], 1 / len(relevance.ids), rtol=1e-5)


@pytest.mark.parametrize("target", ["class", "masked", "cls", "mean"])
def test_input_ablation_equals_one_pass_per_token(target: RelevanceTarget) -> None:
    model = tiny_models.encoder("bert", "ForMaskedLM" if target == "masked" else "ForSequenceClassification")
    for relevance, recorded_input in zip(relevances(model, target), record(model, CORPUS, []).inputs, strict=True):
        tokens = recorded_input.tokens
        output_for = reference_output(model, target, tokens.ids, tokens.special_kinds, relevance.positions)
        ids = torch.from_numpy(tokens.ids.astype(np.int64))
        non_special = np.flatnonzero(tokens.special_kinds == SpecialToken.NONE)
        masked = set(non_special.tolist()) - set(relevance.positions.tolist())
        assert masked == ({relevance.masked_position} if target == "masked" else set())
        np.testing.assert_array_equal(relevance.by_method["token rarity"], tokens.ids[relevance.positions])
        for position in masked:
            ids[position] = model.mask_token_id or 0
        before = output_for(ids)
        for index, position in enumerate(relevance.positions.tolist()):
            ablated = ids.clone()
            ablated[position] = model.mask_token_id or 0
            expected = float((output_for(ablated) - before).norm())
            np.testing.assert_allclose(relevance.by_method["input ablation"][index], expected, atol=2e-5)


def reference_output(
    model: HuggingFaceEncoder, target: RelevanceTarget, ids: Any, special_kinds: Any, positions: Any
) -> Callable[[Tensor], Tensor]:
    """A function from token ids to the output of an eager model of transformers, for one unpadded input."""
    reference = tiny_models.reference(model)
    (masked,) = [i for i in np.flatnonzero(special_kinds == SpecialToken.NONE) if i not in positions] or [0]
    predicted: list[int] = []

    def output_for(input_ids: Tensor) -> Tensor:
        with torch.no_grad():
            output = reference(input_ids[None], output_hidden_states=True)
        if target == "masked":
            return output.logits[0, masked].log_softmax(-1)[int(ids[masked])]
        if target == "class":
            predicted.append(int(output.logits[0].argmax()))
            return output.logits[0].log_softmax(-1)[predicted[0]]
        states = output.hidden_states[-1][0]
        return states[0] if target == "cls" else states.mean(0)

    return output_for


@pytest.mark.parametrize("name", ["bert", "electra", "modernbert", "distilbert"])
def test_gradients_of_a_score_equal_finite_differences(name: str) -> None:
    """A hook shifts the input of the first layer of a second model."""
    model = tiny_models.encoder(name, "ForSequenceClassification")
    relevance = relevances(model, "class")[1]
    reference = tiny_models.reference(model).double()
    ids = torch.from_numpy(relevance.ids.astype(np.int64))[None]
    states = reference(ids, output_hidden_states=True).hidden_states[0].detach()
    predicted = int(reference(ids).logits.argmax())
    first = next(m for n, m in reference.named_modules() if n.endswith(("layers.0", "layer.0")))

    def score(shifted: Tensor) -> float:
        def shift_input(_: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
            return (shifted, *inputs[1:])

        hook = first.register_forward_pre_hook(shift_input)
        with torch.no_grad():
            value = float(reference(ids).logits[0].log_softmax(-1)[predicted])
        hook.remove()
        return value

    step = 1e-2 if name == "modernbert" else 1e-5
    for index, position in enumerate(relevance.positions.tolist()):
        differences: list[float] = []
        for axis in range(states.shape[-1]):
            shift = torch.zeros_like(states)
            shift[0, position, axis] = step
            differences.append((score(states + shift) - score(states - shift)) / (2 * step))
        gradient, state = np.array(differences), states[0, position].numpy()
        tolerance = 2e-2 if name == "modernbert" else 1e-3
        np.testing.assert_allclose(relevance.by_method["gradient"][index], np.linalg.norm(gradient), rtol=tolerance)
        np.testing.assert_allclose(
            relevance.by_method["gradient x input"][index], abs(gradient @ state), rtol=tolerance, atol=1e-4
        )


def test_gradients_of_a_vector_approximate_its_jacobian() -> None:
    model = tiny_models.encoder("bert")
    relevance = relevances(model, "mean", n_directions=4000)[1]
    batch = tiny_models.batch([record(model, CORPUS, []).inputs[1].tokens])
    with torch.enable_grad():
        output = model.forward(batch, hidden=True)
        vector = output.hidden_states[-1][0].mean(0)
        rows = [
            torch.autograd.grad(component, output.hidden_states[0], retain_graph=True)[0][0] for component in vector
        ]
    jacobian = torch.stack(rows)  # (component, token, width)
    norms = jacobian.square().sum((0, 2)).sqrt()[relevance.positions].numpy()
    products = (jacobian * output.hidden_states[0][0]).sum(-1).norm(dim=0)[relevance.positions].detach().numpy()
    np.testing.assert_allclose(relevance.by_method["gradient"], norms, rtol=0.03)
    np.testing.assert_allclose(relevance.by_method["gradient x input"], products, rtol=0.08)


@pytest.mark.parametrize("target", ["masked", "mean"])
def test_attention_is_traced_from_the_state_of_the_target(target: RelevanceTarget) -> None:
    model = tiny_models.encoder("bert", "ForMaskedLM")
    for relevance, recorded_input in zip(
        relevances(model, target, residual_weight=0.3), record(model, CORPUS, []).inputs, strict=True
    ):
        ids = torch.from_numpy(recorded_input.tokens.ids.astype(np.int64))[None]
        if target == "masked":
            ids[0, relevance.masked_position] = model.mask_token_id or 0
        attention = [a[0].detach().double().mean(0).numpy() for a in tiny_models.reference(model)(ids).attentions]
        n = len(recorded_input.tokens)
        target_weights = np.eye(n)[relevance.masked_position] if target == "masked" else np.full(n, 1 / n)
        mixed = np.stack([0.7 * pattern + 0.3 * np.eye(n) for pattern in attention])
        flow = layered_flows(np.concatenate([mixed, np.tile(target_weights, (n, 1))[None]]), 0)
        expected = {
            "raw attention": target_weights @ attention[-1],
            "rollout": target_weights @ mixed[1] @ mixed[0],
            "flow": flow,
        }
        for name, values in expected.items():
            np.testing.assert_allclose(
                relevance.by_layer[name][0], values[relevance.positions], atol=1e-5, err_msg=name
            )


def test_correlations_equal_those_of_scipy_and_shuffled_ones_are_small() -> None:
    model = tiny_models.encoder("bert", "ForSequenceClassification")
    table = run(model, n_directions=4)
    assert isinstance(table, Table) and table.row_names == METHODS
    expected: dict[tuple[str, str], list[float]] = {}
    for relevance in relevances(model, "class"):
        if len(relevance.positions) >= 3:
            for method in METHODS:
                values = relevance.by_layer[method][0] if method in ATTENTION_METHODS else relevance.by_method[method]
                for reference in REFERENCES:
                    result: Any = stats.spearmanr(values, relevance.by_method[reference])
                    expected.setdefault((method, reference), []).append(float(result.statistic))
    for row, method in enumerate(METHODS):
        for reference in REFERENCES:
            estimate = table.measures[f"correlation with {reference}"]
            if method == reference:
                assert estimate.n[row] == 0
                continue
            np.testing.assert_allclose(estimate.value[row], np.mean(expected[method, reference]), atol=1e-5)
            assert estimate.n[row] == len(expected[method, reference])
            assert abs(table.baselines["shuffled tokens"][f"correlation with {reference}"].value[row]) < 0.2


def test_results_by_layer_and_examples() -> None:
    model = tiny_models.encoder("bert", "ForMaskedLM")
    curve = run(model, show="layers")
    assert isinstance(curve, LayerCurve)
    methods = run(model)
    assert isinstance(methods, Table)
    last = [curve.measures[f"correlation of {name} with input ablation"].value[-1] for name in ATTENTION_METHODS]
    np.testing.assert_allclose(last, methods.measures["correlation with input ablation"].value[:3], atol=1e-6)
    first = [curve.measures[f"correlation of {name} with gradient"].value[0] for name in ("rollout", "flow")]
    np.testing.assert_allclose(first[0], first[1], atol=1e-6)  # a single layer: rollout and flow agree
    examples = run(model, show="examples", n_examples=2)
    assert isinstance(examples, Examples)
    assert len(examples.examples) == 2 * (1 + len(METHODS) - len(CONTROLS))
    assert all(len(example.highlights["most relevant"]) <= 3 and example.caption for example in examples.examples)


def test_the_automatic_target_depends_on_the_task_head() -> None:
    kinds = {"ForSequenceClassification": "class", "ForMaskedLM": "masked", "Model": "mean"}
    for kind, expected in kinds.items():
        assert resolve_target("auto", tiny_models.encoder("bert", kind)) == expected
    with pytest.raises(Refusal, match="no task head for --attribution-target masked"):
        resolve_target("masked", tiny_models.encoder("bert"))
    with pytest.raises(Refusal, match="no mask token"):
        resolve_target("auto", tiny_models.encoder("gpt2"))


def test_long_inputs_are_skipped_and_counted() -> None:
    model = tiny_models.encoder("bert")
    table = run(model, skip_longer_than=12)
    assert isinstance(table, Table)
    lengths = [len(recorded_input.tokens) for recorded_input in record(model, CORPUS, []).inputs]
    assert table.measures["correlation with input ablation"].n.max() <= sum(length <= 12 for length in lengths)
    long = sum(length > 12 for length in lengths)
    assert table.sample["sampled inputs"] == len(lengths)
    assert table.sample["inputs skipped (too long)"] == long
    with pytest.raises(Refusal, match="at most 2 tokens"):
        run(model, skip_longer_than=2)


def test_the_untrained_model_is_a_baseline() -> None:
    model = tiny_models.encoder("bert")
    untrained = model.randomised(seed=0)
    corpus = planted.make_corpus(*tiny_models.TEXTS[:3])
    data = attribution_agreement(record(model, corpus, []), record(untrained, corpus, []), model)
    alone = attribution_agreement(record(untrained, corpus, []), None, untrained)
    assert isinstance(data, Table) and isinstance(alone, Table)
    for name, estimates in alone.measures.items():
        assert data.baselines["untrained model"][name] == estimates


@pytest.mark.parametrize(("layers", "width", "expected"), [(8, 256, 60), (12, 768, 14), (48, 1600, 10)])
def test_the_default_sample_is_smaller_for_large_models(layers: int, width: int, expected: int) -> None:
    """Sentences of 30 tokens; the size depends on the model and the lengths, never on the time taken."""
    recording = planted.make_recording(planted.make_corpus(*["a b c d e f g"] * 100), [[planted.uniform_head]])
    tokens = replace(recording.inputs[0].tokens, ids=np.zeros(30, np.int32), special_kinds=np.zeros(30, np.int32))
    recording = replace(recording, inputs=tuple(replace(i, tokens=tokens) for i in recording.inputs))
    model = SimpleNamespace(layers=layers, width=width)
    config = RelevanceConfig("masked", 0.5, "mean", (1,), 16, MAX_SAMPLE_SIZE, 128, 0)
    size = _affordable_sample_size(recording, cast(Encoder, model), config)
    assert size == pytest.approx(expected, abs=2)
    if size > MIN_SAMPLE_SIZE:
        vector = _affordable_sample_size(recording, cast(Encoder, model), replace(config, target="mean"))
        assert vector <= size  # a vector needs more backward passes
