"""Interventions resumed from a layer give the scores of full forward passes, in every model family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import planted_heads
import tiny_models
from bertology.analyses.cache import FOLDER, AnalysisCache
from bertology.analyses.evaluation import ablation as ablation_module
from bertology.analyses.evaluation.ablation import (
    AblationMethod,
    AblationRunner,
    HeadAblation,
    Intervention,
    LayerReordering,
    mean_head_outputs,
    prepare_ablation,
)
from bertology.analyses.evaluation.evaluation import Evaluation, prepare_evaluation
from bertology.analyses.evaluation.score_change import Scores
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import as_corpus
from bertology.encoder.attention_hook import Gates
from bertology.encoder.encoder import ModelInputs, TaskEncoder
from bertology.encoder.layer_variants import LayerVariant
from bertology.encoder.load import load
from bertology.encoder.pruning import prune
from bertology.encoder.task_heads import TaskHeadName, add_task_head
from bertology.errors import Refusal
from planted_tasks import planted_corpus

NAMES = [*tiny_models.FAMILIES, *tiny_models.VARIANTS]
METHODS: tuple[AblationMethod, ...] = ("uniform", "zero", "mean")


def evaluate_classifier(encoder: TaskEncoder) -> Evaluation:
    corpus = as_corpus(tiny_models.TEXTS)
    labels = list(encoder.model.config.id2label.values())
    examples = tuple(replace(example, label=labels[index % 3]) for index, example in enumerate(corpus))
    return prepare_evaluation(encoder, Corpus(examples, name="texts"))


def head_ablations(encoder: TaskEncoder) -> list[Intervention]:
    """Every single head, every layer, and a set over two layers."""
    layers, heads = encoder.layers, encoder.heads
    single = np.eye(layers * heads, dtype=np.bool_).reshape(-1, layers, heads)
    whole_layers = np.broadcast_to(np.eye(layers, dtype=np.bool_)[:, :, None], (layers, layers, heads))
    return [HeadAblation(mask) for mask in (*single, *whole_layers, single[1] | single[-1])]


def assert_same(scores: list[Scores], expected: list[Scores]) -> None:
    assert len(scores) == len(expected)
    for left, right in zip(scores, expected, strict=True):
        np.testing.assert_allclose(left.losses, right.losses, atol=1e-5)
        np.testing.assert_array_equal(left.counts.correct, right.counts.correct)
        np.testing.assert_array_equal(left.counts.total, right.counts.total)


def assert_same_as_full_passes(
    encoder: TaskEncoder, evaluation: Evaluation, method: AblationMethod = "uniform"
) -> list[Scores]:
    interventions = head_ablations(encoder)
    scores, expected = (
        prepare_ablation(encoder, evaluation, method, full_passes=full_passes).evaluate(
            evaluation, interventions, AnalysisCache()
        )
        for full_passes in (False, True)
    )
    assert_same(scores, expected)
    return scores


def tiny_with_task_head(task_head: TaskHeadName, labels: list[str]) -> TaskEncoder:
    base = load("tiny")
    assert isinstance(base, TaskEncoder)
    return add_task_head(base, task_head, labels, variant=LayerVariant(), seed=3)


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_those_of_full_passes(name: str) -> None:
    encoder = tiny_models.encoder(name, "ForSequenceClassification")
    evaluation = evaluate_classifier(encoder)
    for method in METHODS:
        assert prepare_ablation(encoder, evaluation, method).resumable is not None
        intact, *ablated = assert_same_as_full_passes(encoder, evaluation, method)
        assert all(np.abs(scores.losses - intact.losses).max() > 1e-4 for scores in ablated)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("gpt2")])
def test_masked_tokens_have_the_scores_of_full_passes(name: str) -> None:
    encoder = tiny_models.encoder(name, "ForMaskedLM")
    evaluation = prepare_evaluation(encoder, as_corpus(tiny_models.TEXTS))
    assert len({int(mask.sum()) for mask in evaluation.batches[0].inputs.attention_mask}) > 1, "the batch has padding"
    intact = prepare_ablation(encoder, evaluation).evaluate(evaluation, [], AnalysisCache())
    assert_same(intact, [evaluation.scores(encoder.forward)])
    for method in METHODS:
        assert_same_as_full_passes(encoder, evaluation, method)


@pytest.mark.parametrize("task", ["token", "qa"])
def test_tasks_that_read_all_tokens_have_the_scores_of_full_passes(task: str) -> None:
    corpus = planted_corpus(task, 8)
    tags = sorted({tag for example in corpus for tag in example.segments[0].tags or ()})
    encoder = tiny_with_task_head("answer" if task == "qa" else "token", tags)
    assert_same_as_full_passes(encoder, prepare_evaluation(encoder, corpus, task=task))


def test_examples_with_several_rows_have_the_scores_of_full_passes() -> None:
    encoder = tiny_with_task_head("choice", [])
    evaluation = prepare_evaluation(encoder, planted_corpus("choice", 8), task="choice")
    assert len(evaluation.batches[0].inputs.input_ids) > len(evaluation.examples)
    assert_same_as_full_passes(encoder, evaluation)


def test_full_passes_are_those_of_the_gated_encoder() -> None:
    encoder = tiny_models.encoder("bert", "ForSequenceClassification")
    evaluation, mask = evaluate_classifier(encoder), np.zeros((2, 4), np.bool_)
    mask[1, 2] = True
    scores = prepare_ablation(encoder, evaluation, "zero").evaluate(evaluation, [HeadAblation(mask)], AnalysisCache())
    gated = encoder.with_gates(Gates(scale=torch.from_numpy(~mask).float()))
    assert_same(scores, [evaluation.scores(encoder.forward), evaluation.scores(gated.forward)])


@pytest.mark.parametrize("n_rows", [1, 7, 10_000])
def test_the_number_of_interventions_per_pass_changes_nothing(n_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = tiny_models.encoder("bert", "ForMaskedLM")
    evaluation = prepare_evaluation(encoder, as_corpus(tiny_models.TEXTS))
    runner, interventions = prepare_ablation(encoder, evaluation), head_ablations(encoder)
    expected = runner.evaluate(evaluation, interventions, AnalysisCache())
    n_tokens = n_rows * evaluation.batches[0].inputs.input_ids.numel()
    monkeypatch.setattr(ablation_module, "TOKENS_PER_PASS", {"cpu": n_tokens})
    assert_same(runner.evaluate(evaluation, interventions, AnalysisCache()), expected)


def test_layers_below_an_intervention_are_not_rerun() -> None:
    encoder, corpus = planted_heads.single_head()
    evaluation = prepare_evaluation(encoder, corpus, sample_size=8)
    runner = prepare_ablation(encoder, evaluation, "zero")
    assert runner.resumable is not None
    calls: list[tuple[int, int]] = []

    def record_call(layer: int) -> Any:
        def hook(_: Any, inputs: Any) -> None:
            calls.append((layer, len(inputs[0])))

        return hook

    handles = [
        proxy.layer.register_forward_pre_hook(record_call(layer))
        for layer, proxy in enumerate(runner.resumable.layer_proxies)
    ]
    runner.evaluate(evaluation, head_ablations(encoder)[:12], AnalysisCache())
    for handle in handles:
        handle.remove()
    # Once for the intact model and once for its head outputs; then the four ablations of the first layer are run
    # through the second. The last layer is computed for [CLS] only, without calling the module.
    assert sorted(calls) == [(0, 8), (0, 8), (1, 8), (1, 8), (1, 32), (2, 8)]


def test_mean_outputs_are_over_tokens_without_padding() -> None:
    encoder = tiny_models.encoder("bert", "ForMaskedLM")
    evaluation = prepare_evaluation(encoder, as_corpus(tiny_models.TEXTS))
    outputs: list[list[Any]] = [[], []]

    def collect(layer: Any) -> None:
        outputs[layer.layer].append(layer.head_outputs[0])

    for batch in evaluation.batches:
        inputs = batch.inputs
        for row, mask in enumerate(inputs.attention_mask):
            n = int(mask.sum())
            tensors = (inputs.input_ids, inputs.token_type_ids, inputs.attention_mask)
            with torch.no_grad():
                encoder.forward(ModelInputs(*(tensor[row : row + 1, :n] for tensor in tensors)), on_layer=collect)
    expected = torch.stack([torch.cat(layer, 1).mean(1) for layer in outputs])
    torch.testing.assert_close(
        mean_head_outputs(encoder, [batch.inputs for batch in evaluation.batches]), expected, atol=1e-6, rtol=1e-5
    )


@pytest.mark.parametrize("name", ["bert", "albert"])
def test_layers_can_be_reordered(name: str) -> None:
    encoder = tiny_models.encoder(name, "ForSequenceClassification")
    evaluation = evaluate_classifier(encoder)
    intact, same, swapped, dropped = prepare_ablation(encoder, evaluation).evaluate(
        evaluation, [LayerReordering((0, 1)), LayerReordering((1, 0)), LayerReordering((0,))], AnalysisCache()
    )
    assert_same([same], [intact])
    assert np.abs(dropped.losses - intact.losses).min() > 1e-4
    # ALBERT's layers share their weights: swapping them changes nothing.
    assert (np.abs(swapped.losses - intact.losses).max() > 1e-3) == (name != "albert")


def test_a_model_that_cannot_be_resumed_takes_full_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = tiny_models.encoder("bert", "ForSequenceClassification")
    evaluation, interventions = evaluate_classifier(encoder), head_ablations(encoder)[:3]
    expected = prepare_ablation(encoder, evaluation).evaluate(evaluation, interventions, AnalysisCache())

    def not_resumable(encoder: TaskEncoder) -> None:
        return None

    monkeypatch.setattr(ablation_module, "make_resumable", not_resumable)

    runner = prepare_ablation(encoder, evaluation)
    assert runner.resumable is None
    assert_same(runner.evaluate(evaluation, interventions, AnalysisCache()), expected)
    with pytest.raises(Refusal, match="cannot be skipped or swapped"):
        runner.evaluate(evaluation, [LayerReordering((1, 0))], AnalysisCache())


def test_layers_of_a_pruned_model_can_be_reordered_but_its_heads_cannot_be_ablated() -> None:
    encoder = tiny_models.encoder("bert", "ForSequenceClassification")
    evaluation, kept_heads = evaluate_classifier(encoder), np.ones((2, 4), np.bool_)
    kept_heads[0] = False
    kept_heads[1, 2:] = False
    pruned = prune(encoder, kept_heads)
    gated = encoder.with_gates(Gates(scale=torch.from_numpy(kept_heads).float()))
    runner = prepare_ablation(pruned, evaluation)
    assert runner.resumable is not None
    intact, swapped = runner.evaluate(evaluation, [LayerReordering((1, 0))], AnalysisCache())
    assert_same([intact], [evaluation.scores(gated.forward)])
    assert np.abs(swapped.losses - intact.losses).max() > 1e-4
    with pytest.raises(Refusal, match="is pruned"):
        runner.evaluate(evaluation, head_ablations(encoder), AnalysisCache())


def test_encoders_without_heads_or_with_gates_are_refused() -> None:
    encoder, corpus = planted_heads.single_head()
    evaluation = prepare_evaluation(encoder, corpus, sample_size=4)
    for unsuitable in (load("random-vectors:8"), encoder.with_gates(Gates(scale=torch.ones(3, 4)))):
        with pytest.raises(Refusal, match="no heads or layers to ablate"):
            prepare_ablation(unsuitable, evaluation)


def test_finished_batches_are_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, corpus = planted_heads.single_head()
    evaluation, interventions = prepare_evaluation(encoder, corpus), head_ablations(encoder)
    assert len(evaluation.batches) == 2
    expected = prepare_ablation(encoder, evaluation).evaluate(evaluation, interventions, AnalysisCache())
    outputs, evaluated = AblationRunner.outputs, list[int]()

    def interrupted(self: Any, batch: Any, *args: Any) -> Any:
        evaluated.append(len(batch.examples))
        if len(evaluated) == 2:
            raise KeyboardInterrupt
        return outputs(self, batch, *args)

    monkeypatch.setattr(AblationRunner, "outputs", interrupted)
    with pytest.raises(KeyboardInterrupt):
        prepare_ablation(encoder, evaluation).evaluate(evaluation, interventions, AnalysisCache(tmp_path))
    assert len(list((tmp_path / FOLDER).glob("*.json"))) == 1
    reports: list[tuple[int, int]] = []

    def progress(_: str) -> Callable[[int, int], None]:
        return lambda done, total: reports.append((done, total))

    cache = AnalysisCache(tmp_path, progress)
    resumed = prepare_ablation(encoder, evaluation).evaluate(evaluation, interventions, cache)
    assert len(evaluated) == 3 and reports[-1] == (2 * len(interventions), 2 * len(interventions))
    assert_same(resumed, expected)
    for subset in (interventions[:3], interventions):
        prepare_ablation(encoder, evaluation, "zero").evaluate(evaluation, subset, AnalysisCache(tmp_path))
    assert len(evaluated) == 7  # other interventions, or another method, have other keys
