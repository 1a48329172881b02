"""The one relevant token of a planted model is found; gradients and ablations equal an independent computation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
from bertology.recording.recorder import record
from bertology.results.shapes import Examples, LayerCurve, Table

CORPUS = planted.make_corpus(*tiny_models.TEXTS)
ATTENDING = ("raw attention", "rollout", "flow")


def how(target: RelevanceTarget, layers: int = 2, **changed: Any) -> RelevanceConfig:
    given: dict[str, Any] = {
        "residual_weight": 0.5,
        "fusion": "mean",
        "layers": (layers,),
        "n_directions": 4,
        "sample_size": 0,
        "max_length": 64,
        "seed": 0,
    }
    return RelevanceConfig(target, **{**given, **changed})


def relevant(model: Encoder, target: RelevanceTarget, corpus: Corpus = CORPUS, **changed: Any) -> list[TokenRelevance]:
    outcome = token_relevances(record(model, corpus, []), model, how(target, model.layers, **changed))
    return sorted(outcome, key=lambda one: one.input_index)


def shown(model: Encoder, **options: Any) -> Table | LayerCurve | Examples:
    data = attribution_agreement.function(
        record(model, CORPUS, []), None, model, **attribution_agreement.resolve_options(options)
    )
    assert isinstance(data, Table | LayerCurve | Examples)
    return data


WORD = "are"
ONE_WORD = planted.make_corpus(
    "the keys are on the table", "are the lights on", "at last the lights of the town are on"
)


def one_word_model() -> HuggingFaceEncoder:
    """A BERT whose first layer attends to one word, and whose second layer attends uniformly, without effect.

    Without positions and types a state is its word. Queries are one constant vector; the key of a state is how much it
    is like that word. Only that word and [CLS] itself can change the class.
    """
    made = tiny_models.model("bert", "ForSequenceClassification")
    with torch.no_grad():
        embeddings = made.bert.embeddings
        embeddings.position_embeddings.weight.zero_()
        embeddings.token_type_embeddings.weight.zero_()
        states = embeddings.LayerNorm(embeddings.word_embeddings.weight)
        liked = states[tiny_models.hf_tokenizer("bert").convert_tokens_to_ids(WORD)]
        first, second = made.bert.encoder.layer
        for attending in (first.attention.self, second.attention.self):
            for weight in (attending.query.weight, attending.key.weight, attending.key.bias):
                weight.zero_()
        first.attention.self.query.bias.fill_(1.0)
        first.attention.self.key.weight.copy_((liked - states.mean(0)).expand(tiny_models.WIDTH, -1) * 0.2)
        second.attention.output.dense.weight.zero_()
    return tiny_models.wrap_model(made, "bert")


def test_the_relevant_token_is_found_by_all_but_raw_attention() -> None:
    model = one_word_model()
    word = tiny_models.hf_tokenizer("bert").convert_tokens_to_ids(WORD)
    for one in relevant(model, "class", corpus=ONE_WORD):
        values = one.by_method | {name: rows[0] for name, rows in one.by_layer.items()}
        for name in ("input ablation", "gradient", "gradient x input", "rollout", "flow"):
            assert one.ids[one.positions[values[name].argmax()]] == word, name
        for name in ("input ablation", "gradient"):
            assert values[name].max() > 0.9 * values[name].sum(), name
        np.testing.assert_allclose(values["raw attention"], 1 / len(one.ids), rtol=1e-5)


@pytest.mark.parametrize("target", ["class", "masked", "cls", "mean"])
def test_input_ablation_equals_one_pass_per_token(target: RelevanceTarget) -> None:
    model = tiny_models.encoder("bert", "ForMaskedLM" if target == "masked" else "ForSequenceClassification")
    for one, recorded_input in zip(relevant(model, target), record(model, CORPUS, []).inputs, strict=True):
        read = reader(model, target, recorded_input.tokens.ids, recorded_input.tokens.special_kinds, one.positions)
        ids = torch.from_numpy(recorded_input.tokens.ids.astype(np.int64))
        asked = {int(i) for i in np.flatnonzero(recorded_input.tokens.special_kinds == SpecialToken.NONE)} - set(
            one.positions.tolist()
        )
        assert asked == ({one.masked_position} if target == "masked" else set())
        np.testing.assert_array_equal(one.by_method["token rarity"], recorded_input.tokens.ids[one.positions])
        for place in asked:
            ids[place] = model.mask_token_id or 0
        before = read(ids)
        for place, piece in enumerate(one.positions.tolist()):
            changed = ids.clone()
            changed[piece] = model.mask_token_id or 0
            expected = float((read(changed) - before).norm())
            np.testing.assert_allclose(one.by_method["input ablation"][place], expected, atol=2e-5)


def reader(
    model: HuggingFaceEncoder, target: RelevanceTarget, ids: Any, special: Any, counted: Any
) -> Callable[[Tensor], Tensor]:
    """The output for one unpadded input of an eager model of transformers."""
    reference = tiny_models.reference(model)
    (masked,) = [i for i in np.flatnonzero(special == SpecialToken.NONE) if i not in counted] or [0]
    top: list[int] = []

    def read(fed: Tensor) -> Tensor:
        with torch.no_grad():
            output = reference(fed[None], output_hidden_states=True)
        if target == "masked":
            return output.logits[0, masked].log_softmax(-1)[int(ids[masked])]
        if target == "class":
            top.append(int(output.logits[0].argmax()))
            return output.logits[0].log_softmax(-1)[top[0]]
        states = output.hidden_states[-1][0]
        return states[0] if target == "cls" else states.mean(0)

    return read


@pytest.mark.parametrize("name", ["bert", "electra", "modernbert", "distilbert"])
def test_gradients_of_a_score_equal_finite_differences(name: str) -> None:
    """Parity with finite differences: a hook moves the input of the first layer of a second model."""
    model = tiny_models.encoder(name, "ForSequenceClassification")
    one = relevant(model, "class")[1]
    reference = tiny_models.reference(model).double()
    ids = torch.from_numpy(one.ids.astype(np.int64))[None]
    states = reference(ids, output_hidden_states=True).hidden_states[0].detach()
    top = int(reference(ids).logits.argmax())
    first = next(m for n, m in reference.named_modules() if n.endswith(("layers.0", "layer.0")))

    def score(moved: Tensor) -> float:
        def replaced(_: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
            return (moved, *given[1:])

        hook = first.register_forward_pre_hook(replaced)
        with torch.no_grad():
            value = float(reference(ids).logits[0].log_softmax(-1)[top])
        hook.remove()
        return value

    step = 1e-2 if name == "modernbert" else 1e-5
    for place, piece in enumerate(one.positions.tolist()):
        slopes: list[float] = []
        for axis in range(states.shape[-1]):
            away = torch.zeros_like(states)
            away[0, piece, axis] = step
            slopes.append((score(states + away) - score(states - away)) / (2 * step))
        slope, state = np.array(slopes), states[0, piece].numpy()
        tolerance = 2e-2 if name == "modernbert" else 1e-3
        np.testing.assert_allclose(one.by_method["gradient"][place], np.linalg.norm(slope), rtol=tolerance)
        np.testing.assert_allclose(
            one.by_method["gradient x input"][place], abs(slope @ state), rtol=tolerance, atol=1e-4
        )


def test_gradients_of_a_vector_approximate_its_jacobian() -> None:
    model = tiny_models.encoder("bert")
    one = relevant(model, "mean", n_directions=4000)[1]
    batch = tiny_models.batch([record(model, CORPUS, []).inputs[1].tokens])
    with torch.enable_grad():
        output = model.forward(batch, hidden=True)
        vector = output.hidden_states[-1][0].mean(0)
        rows = [torch.autograd.grad(number, output.hidden_states[0], retain_graph=True)[0][0] for number in vector]
    jacobian = torch.stack(rows)  # (number, token, width)
    whole = jacobian.square().sum((0, 2)).sqrt()[one.positions].numpy()
    moved = (jacobian * output.hidden_states[0][0]).sum(-1).norm(dim=0)[one.positions].detach().numpy()
    np.testing.assert_allclose(one.by_method["gradient"], whole, rtol=0.03)
    np.testing.assert_allclose(one.by_method["gradient x input"], moved, rtol=0.08)


@pytest.mark.parametrize("target", ["masked", "mean"])
def test_attention_is_traced_from_the_state_that_is_read(target: RelevanceTarget) -> None:
    model = tiny_models.encoder("bert", "ForMaskedLM")
    for one, recorded_input in zip(
        relevant(model, target, residual_weight=0.3), record(model, CORPUS, []).inputs, strict=True
    ):
        ids = torch.from_numpy(recorded_input.tokens.ids.astype(np.int64))[None]
        if target == "masked":
            ids[0, one.masked_position] = model.mask_token_id or 0
        maps = [a[0].detach().double().mean(0).numpy() for a in tiny_models.reference(model)(ids).attentions]
        n = len(recorded_input.tokens)
        weights = np.eye(n)[one.masked_position] if target == "masked" else np.full(n, 1 / n)
        shares = np.stack([0.7 * layer + 0.3 * np.eye(n) for layer in maps])
        flow = layered_flows(np.concatenate([shares, np.tile(weights, (n, 1))[None]]), 0)
        expected = {"raw attention": weights @ maps[-1], "rollout": weights @ shares[1] @ shares[0], "flow": flow}
        for name, values in expected.items():
            np.testing.assert_allclose(one.by_layer[name][0], values[one.positions], atol=1e-5, err_msg=name)


def test_correlations_equal_those_of_scipy_and_shuffled_ones_are_small() -> None:
    model = tiny_models.encoder("bert", "ForSequenceClassification")
    table = shown(model, n_directions=4)
    assert isinstance(table, Table) and table.row_names == METHODS
    outcome: dict[tuple[str, str], list[float]] = {}
    for one in relevant(model, "class"):
        if len(one.positions) >= 3:
            for method in METHODS:
                values = one.by_layer[method][0] if method in ATTENDING else one.by_method[method]
                for reference in REFERENCES:
                    result: Any = stats.spearmanr(values, one.by_method[reference])
                    outcome.setdefault((method, reference), []).append(float(result.statistic))
    for place, method in enumerate(METHODS):
        for reference in REFERENCES:
            estimate = table.measures[f"correlation with {reference}"]
            if method == reference:
                assert estimate.n[place] == 0
                continue
            np.testing.assert_allclose(estimate.value[place], np.mean(outcome[method, reference]), atol=1e-5)
            assert estimate.n[place] == len(outcome[method, reference])
            assert abs(table.baselines["shuffled tokens"][f"correlation with {reference}"].value[place]) < 0.2


def test_every_layer_and_examples_are_shown() -> None:
    model = tiny_models.encoder("bert", "ForMaskedLM")
    curve = shown(model, show="layers")
    assert isinstance(curve, LayerCurve)
    methods = shown(model)
    assert isinstance(methods, Table)
    last = [curve.measures[f"correlation of {name} with input ablation"].value[-1] for name in ATTENDING]
    np.testing.assert_allclose(last, methods.measures["correlation with input ablation"].value[:3], atol=1e-6)
    first = [curve.measures[f"correlation of {name} with gradient"].value[0] for name in ("rollout", "flow")]
    np.testing.assert_allclose(first[0], first[1], atol=1e-6)  # a single layer: rollout and flow agree
    examples = shown(model, show="examples", n_examples=2)
    assert isinstance(examples, Examples)
    assert len(examples.examples) == 2 * (1 + len(METHODS) - len(CONTROLS))
    assert all(len(one.highlights["most relevant"]) <= 3 and one.caption for one in examples.examples)


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
    table = shown(model, skip_longer_than=12)
    assert isinstance(table, Table)
    lengths = [len(recorded_input.tokens) for recorded_input in record(model, CORPUS, []).inputs]
    assert table.measures["correlation with input ablation"].n.max() <= sum(length <= 12 for length in lengths)
    long = sum(length > 12 for length in lengths)
    assert table.sample["sampled inputs"] == len(lengths)
    assert table.sample["inputs skipped (too long)"] == long
    with pytest.raises(Refusal, match="at most 2 tokens"):
        shown(model, skip_longer_than=2)


def test_the_untrained_model_is_a_baseline() -> None:
    model = tiny_models.encoder("bert")
    untrained = model.randomised(seed=0)
    corpus = planted.make_corpus(*tiny_models.TEXTS[:3])
    options = attribution_agreement.resolve_options({})
    data = attribution_agreement.function(record(model, corpus, []), record(untrained, corpus, []), model, **options)
    alone = attribution_agreement.function(record(untrained, corpus, []), None, untrained, **options)
    assert isinstance(data, Table) and isinstance(alone, Table)
    for name, estimates in alone.measures.items():
        assert data.baselines["untrained model"][name] == estimates
