"""Online code lengths are sums over portions of the training sentences."""

from __future__ import annotations

import numpy as np

import planted
import planted_probes
from bertology.analyses.probing.code_length import half_of_training_data, online_code_length, online_steps
from bertology.analyses.probing.dataset import WORD_SITE, ProbeDataset, ProbeExamples, task_datasets
from bertology.analyses.probing.fitting import ProbeConfig, fit_and_predict, parse_probe
from bertology.analyses.probing.train_test_split import TrainTestSplit
from bertology.analyses.probing.word_labels import WORD_LABELS
from bertology.recording.sites import RAW_SITES


def test_the_online_code_is_the_sum_of_its_portions() -> None:
    generator = np.random.default_rng(0)
    inputs = planted.recorded_inputs(planted_probes.make_corpus(16))
    input_index = np.repeat(np.arange(16), 8)
    features = generator.normal(size=(1, 128, 4)).astype(np.float32)
    labels = np.array(planted_probes.TAGS, object)[generator.integers(3, size=128)]
    examples = ProbeExamples(features, labels, labels, input_index, inputs)
    config = ProbeConfig(parse_probe("linear"), (0,))
    dataset = ProbeDataset(examples, examples, planted_probes.TAGS, {})
    code = online_code_length(dataset, config, control=False)
    bits = code.bits.sum(2)
    nats = online_code_length(dataset, config, control=False, legacy=True).bits.sum(2)
    n_labels = int(code.n_labels.sum())
    first = online_steps(n_labels // 8)[0] * 8 * np.log2(3)
    np.testing.assert_allclose((bits - first) * np.log(2), nats - first, rtol=1e-6)
    assert bits[0, 0, 0] > nats[0, 0, 0]
    np.testing.assert_allclose(code.length(0, seed=0).value, bits[0, 0] / n_labels)
    compression = code.compression(0, 3, seed=0)
    np.testing.assert_allclose(compression.value, np.log2(3) * n_labels / bits[0, 0])
    assert compression.interval == "bootstrap" and compression.low[0] < compression.value[0] < compression.high[0]


def test_half_of_the_training_data_is_that_of_the_last_portion_of_the_online_code() -> None:
    recording = planted_probes.make_recording(planted_probes.make_corpus(), planted_probes.tag)
    recording = recording.with_sites([RAW_SITES[WORD_SITE]])
    dataset, _ = task_datasets(recording, None, None, WORD_LABELS["pos"], TrainTestSplit(), 10, analysis_name="test")
    config = ProbeConfig(parse_probe("linear"), (0, 1))
    half_predictions = online_code_length(dataset, config, control=False).half_predictions[0]
    for run, seed in enumerate(config.seeds):
        half = half_of_training_data(dataset, seed)
        assert 0.5 < len(half.train) / len(dataset.train) < 0.65  # half, and all validation documents
        predictions, _ = fit_and_predict(half, ProbeConfig(config.classifier, (seed,)))
        agreement = (predictions.predicted[:, 0] == half_predictions.predicted[:, run]).mean()
        assert agreement > 0.98  # the solver's tolerance differs


def test_portions_are_those_of_the_paper_if_there_are_enough_sentences() -> None:
    assert online_steps(10_000) == [10, 20, 40, 80, 160, 320, 625, 1250, 2500, 5000, 10_000]
    assert online_steps(3) == [1, 2, 3]
