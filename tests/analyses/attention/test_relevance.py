"""A model in which one piece matters says so; gradients and blanks are those of an independent path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

import models
import planted
from bertology.analyses.attention.relevance import CONTROLS, METHODS, REFERENCES, relevance
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.maths.maximum_flow import layered_flows
from bertology.measures.attention.token_relevance import How, Relevance, Target, relevances, settled
from bertology.recording.recorder import record
from bertology.results.shapes import Examples, LayerCurve, Table

CORPUS = planted.corpus_of(*models.TEXTS)
ATTENDING = ("raw attention", "rollout", "flow")


def how(target: Target, layers: int = 2, **changed: Any) -> How:
    given: dict[str, Any] = {
        "residual": 0.5,
        "fusion": "mean",
        "depths": (layers,),
        "directions": 4,
        "sentences": 0,
        "longest": 64,
        "seed": 0,
    }
    return How(target, **{**given, **changed})


def relevant(model: Encoder, target: Target, corpus: Corpus = CORPUS, **changed: Any) -> list[Relevance]:
    found = relevances(record(model, corpus, []), model, how(target, model.layers, **changed))
    return sorted(found, key=lambda one: one.entry)


def shown(model: Encoder, **options: Any) -> Table | LayerCurve | Examples:
    data = relevance.function(record(model, CORPUS, []), None, model, **relevance.settled(options))
    assert isinstance(data, Table | LayerCurve | Examples)
    return data


WORD = "are"
ONE_WORD = planted.corpus_of("the keys are on the table", "are the lights on", "at last the lights of the town are on")


def one_word_model() -> HuggingFaceEncoder:
    """A BERT in which every piece looks at one word in the first layer, and in the second at all alike, to no effect.

    Without positions and types a state is its word. Queries are one constant vector; the key of a state is how much it
    is like that word. Only that word and [CLS] itself can change the class.
    """
    made = models.model("bert", "ForSequenceClassification")
    with torch.no_grad():
        embeddings = made.bert.embeddings
        embeddings.position_embeddings.weight.zero_()
        embeddings.token_type_embeddings.weight.zero_()
        states = embeddings.LayerNorm(embeddings.word_embeddings.weight)
        liked = states[models.tokenizer("bert").convert_tokens_to_ids(WORD)]
        first, second = made.bert.encoder.layer
        for attending in (first.attention.self, second.attention.self):
            for weight in (attending.query.weight, attending.key.weight, attending.key.bias):
                weight.zero_()
        first.attention.self.query.bias.fill_(1.0)
        first.attention.self.key.weight.copy_((liked - states.mean(0)).expand(models.WIDTH, -1) * 0.2)
        second.attention.output.dense.weight.zero_()
    return models.wrapped(made, "bert")


def test_the_piece_that_matters_is_found_by_all_but_the_last_layer_alone() -> None:
    model = one_word_model()
    word = models.tokenizer("bert").convert_tokens_to_ids(WORD)
    for one in relevant(model, "class", corpus=ONE_WORD):
        values = one.others | {name: rows[0] for name, rows in one.by_layer.items()}
        for name in ("blank-out", "gradient", "gradient x input", "rollout", "flow"):
            assert one.ids[one.pieces[values[name].argmax()]] == word, name
        for name in ("blank-out", "gradient"):
            assert values[name].max() > 0.9 * values[name].sum(), name
        np.testing.assert_allclose(values["raw attention"], 1 / len(one.ids), rtol=1e-5)


@pytest.mark.parametrize("target", ["class", "masked", "cls", "mean"])
def test_blanks_are_those_of_one_pass_a_piece(target: Target) -> None:
    model = models.encoder("bert", "ForMaskedLM" if target == "masked" else "ForSequenceClassification")
    for one, entry in zip(relevant(model, target), record(model, CORPUS, []).entries, strict=True):
        read = reader(model, target, entry.pieces.ids, entry.pieces.special, one.pieces)
        ids = torch.from_numpy(entry.pieces.ids.astype(np.int64))
        asked = {int(i) for i in np.flatnonzero(entry.pieces.special == Special.NONE)} - set(one.pieces.tolist())
        assert asked == ({one.masked} if target == "masked" else set())
        np.testing.assert_array_equal(one.others["rarity"], entry.pieces.ids[one.pieces])
        for place in asked:
            ids[place] = model.mask_id or 0
        before = read(ids)
        for place, piece in enumerate(one.pieces.tolist()):
            changed = ids.clone()
            changed[piece] = model.mask_id or 0
            expected = float((read(changed) - before).norm())
            np.testing.assert_allclose(one.others["blank-out"][place], expected, atol=2e-5)


def reader(
    model: HuggingFaceEncoder, target: Target, ids: Any, special: Any, counted: Any
) -> Callable[[Tensor], Tensor]:
    """What is read from one unpadded input by transformers' own eager model."""
    reference = models.reference(model)
    (masked,) = [i for i in np.flatnonzero(special == Special.NONE) if i not in counted] or [0]
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
def test_gradients_of_a_score_are_finite_differences(name: str) -> None:
    """The first layer's input is moved by a hook on a second model."""
    model = models.encoder(name, "ForSequenceClassification")
    one = relevant(model, "class")[1]
    reference = models.reference(model).double()
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
    for place, piece in enumerate(one.pieces.tolist()):
        slopes: list[float] = []
        for axis in range(states.shape[-1]):
            away = torch.zeros_like(states)
            away[0, piece, axis] = step
            slopes.append((score(states + away) - score(states - away)) / (2 * step))
        slope, state = np.array(slopes), states[0, piece].numpy()
        tolerance = 2e-2 if name == "modernbert" else 1e-3
        np.testing.assert_allclose(one.others["gradient"][place], np.linalg.norm(slope), rtol=tolerance)
        np.testing.assert_allclose(one.others["gradient x input"][place], abs(slope @ state), rtol=tolerance, atol=1e-4)


def test_gradients_of_a_vector_come_near_its_whole_jacobian() -> None:
    model = models.encoder("bert")
    one = relevant(model, "mean", directions=4000)[1]
    batch = models.batch([record(model, CORPUS, []).entries[1].pieces])
    with torch.enable_grad():
        output = model.run(batch, hidden=True)
        vector = output.hidden[-1][0].mean(0)
        rows = [torch.autograd.grad(number, output.hidden[0], retain_graph=True)[0][0] for number in vector]
    jacobian = torch.stack(rows)  # (number, piece, width)
    whole = jacobian.square().sum((0, 2)).sqrt()[one.pieces].numpy()
    moved = (jacobian * output.hidden[0][0]).sum(-1).norm(dim=0)[one.pieces].detach().numpy()
    np.testing.assert_allclose(one.others["gradient"], whole, rtol=0.03)
    np.testing.assert_allclose(one.others["gradient x input"], moved, rtol=0.08)


@pytest.mark.parametrize("target", ["masked", "mean"])
def test_attention_is_followed_from_the_state_that_is_read(target: Target) -> None:
    model = models.encoder("bert", "ForMaskedLM")
    for one, entry in zip(relevant(model, target, residual=0.3), record(model, CORPUS, []).entries, strict=True):
        ids = torch.from_numpy(entry.pieces.ids.astype(np.int64))[None]
        if target == "masked":
            ids[0, one.masked] = model.mask_id or 0
        maps = [a[0].detach().double().mean(0).numpy() for a in models.reference(model)(ids).attentions]
        n = len(entry.pieces)
        weights = np.eye(n)[one.masked] if target == "masked" else np.full(n, 1 / n)
        shares = np.stack([0.7 * layer + 0.3 * np.eye(n) for layer in maps])
        flow = layered_flows(np.concatenate([shares, np.tile(weights, (n, 1))[None]]), 0)
        expected = {"raw attention": weights @ maps[-1], "rollout": weights @ shares[1] @ shares[0], "flow": flow}
        for name, values in expected.items():
            np.testing.assert_allclose(one.by_layer[name][0], values[one.pieces], atol=1e-5, err_msg=name)


def test_correlations_are_scipys_and_shuffles_find_nothing() -> None:
    model = models.encoder("bert", "ForSequenceClassification")
    table = shown(model, directions=4)
    assert isinstance(table, Table) and table.rows_named == METHODS
    found: dict[tuple[str, str], list[float]] = {}
    for one in relevant(model, "class"):
        if len(one.pieces) >= 3:
            for method in METHODS:
                values = one.by_layer[method][0] if method in ATTENDING else one.others[method]
                for reference in REFERENCES:
                    result: Any = stats.spearmanr(values, one.others[reference])
                    found.setdefault((method, reference), []).append(float(result.statistic))
    for place, method in enumerate(METHODS):
        for reference in REFERENCES:
            estimate = table.measures[f"with {reference}"]
            if method == reference:
                assert estimate.n[place] == 0
                continue
            np.testing.assert_allclose(estimate.value[place], np.mean(found[method, reference]), atol=1e-5)
            assert estimate.n[place] == len(found[method, reference])
            assert abs(table.baselines["shuffled"][f"with {reference}"].value[place]) < 0.2


def test_every_layer_and_examples_are_shown() -> None:
    model = models.encoder("bert", "ForMaskedLM")
    curve = shown(model, show="layers")
    assert isinstance(curve, LayerCurve)
    methods = shown(model)
    assert isinstance(methods, Table)
    last = [curve.measures[f"{name} with blank-out"].value[-1] for name in ATTENDING]
    np.testing.assert_allclose(last, methods.measures["with blank-out"].value[:3], atol=1e-6)
    first = [curve.measures[f"{name} with gradient"].value[0] for name in ("rollout", "flow")]
    np.testing.assert_allclose(first[0], first[1], atol=1e-6)  # one layer: both are its shares
    examples = shown(model, show="examples", count=2)
    assert isinstance(examples, Examples)
    assert len(examples.examples) == 2 * (1 + len(METHODS) - len(CONTROLS))
    assert all(len(one.marked["most relevant"]) <= 3 and one.caption for one in examples.examples)


def test_each_model_is_asked_what_it_can_answer() -> None:
    kinds = {"ForSequenceClassification": "class", "ForMaskedLM": "masked", "Model": "mean"}
    for kind, expected in kinds.items():
        assert settled("auto", models.encoder("bert", kind)) == expected
    with pytest.raises(Refusal, match="no head for --target masked"):
        settled("masked", models.encoder("bert"))
    with pytest.raises(Refusal, match="no mask token"):
        settled("auto", models.encoder("gpt2"))


def test_long_inputs_are_left_out_and_counted() -> None:
    model = models.encoder("bert")
    table = shown(model, longest=12)
    assert isinstance(table, Table)
    lengths = [len(entry.pieces) for entry in record(model, CORPUS, []).entries]
    assert table.measures["with blank-out"].n.max() <= sum(length <= 12 for length in lengths)
    long = sum(length > 12 for length in lengths)
    told = f"{len(lengths)} of {len(lengths)} inputs drawn, {long} of more than 12 pieces left out"
    assert told in table.units["with blank-out"]
    with pytest.raises(Refusal, match="at most 2 pieces"):
        shown(model, longest=2)


def test_random_weights_stand_beside() -> None:
    model = models.encoder("bert")
    fresh = model.randomised(seed=0)
    corpus = planted.corpus_of(*models.TEXTS[:3])
    options = relevance.settled({})
    data = relevance.function(record(model, corpus, []), record(fresh, corpus, []), model, **options)
    alone = relevance.function(record(fresh, corpus, []), None, fresh, **options)
    assert isinstance(data, Table) and isinstance(alone, Table)
    for name, estimates in alone.measures.items():
        assert data.baselines["random weights"][name] == estimates
