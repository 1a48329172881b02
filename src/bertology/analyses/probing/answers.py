"""Predictions of probes as answers: one record per test example, layer, seed and series."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from bertology.analyses.probing.dataset import ProbeDataset
from bertology.analyses.probing.fitting import ProbePredictions
from bertology.results.answers import Answer


def probe_answers(
    dataset: ProbeDataset, predictions: Mapping[str, ProbePredictions], seeds: tuple[int, ...]
) -> Iterator[Answer]:
    """The label predicted for each test example by each series.

    An item is the sentence's id, or the number of its example in the corpus, and the number of the labelled word or
    span in it. Predictions of baselines without states are the same in all layers and have none.
    """
    test, counts = dataset.test, Counter[int]()
    items: list[Answer] = []
    for index, control_type in zip(test.input_index.tolist(), test.control_types.tolist(), strict=True):
        recorded_input = test.inputs[index]
        counts[index] += 1
        sentence = recorded_input.text.segments[0]
        name = sentence.id or recorded_input.example_index + 1
        items.append({"item": f"{name}:{counts[index]}", "text": sentence.text, "type": control_type})
    for series, predicted in predictions.items():
        n_layers, n_seeds, _ = predicted.predicted.shape
        for layer in range(n_layers):
            for run in range(n_seeds):
                condition = {"layer": layer if n_layers > 1 else None, "seed": seeds[run] if n_seeds > 1 else None}
                labels = zip(predicted.gold[run].tolist(), predicted.predicted[layer, run].tolist(), strict=True)
                for item, (gold, label) in zip(items, labels, strict=True):
                    names = {"gold": dataset.labels[gold], "prediction": dataset.labels[label]}
                    yield item | {"series": series} | condition | names | {"correct": float(gold == label)}
