"""Online code lengths are sums over portions of the training sentences."""

from __future__ import annotations

import numpy as np

import planted
import planted_probes
from bertology.analyses.probing.code_length import online_code_length, online_steps
from bertology.analyses.probing.dataset import ProbeDataset, ProbeExamples
from bertology.analyses.probing.fitting import ProbeConfig, parse_probe


def test_the_online_code_is_the_sum_of_its_portions() -> None:
    generator = np.random.default_rng(0)
    inputs = planted.recorded_inputs(planted_probes.make_corpus(16))
    input_index = np.repeat(np.arange(16), 8)
    features = generator.normal(size=(1, 128, 4)).astype(np.float32)
    labels = np.array(planted_probes.TAGS, object)[generator.integers(3, size=128)]
    examples = ProbeExamples(features, labels, labels, input_index, inputs)
    config = ProbeConfig(parse_probe("linear"), (0,))
    dataset = ProbeDataset(examples, examples, planted_probes.TAGS, {})
    bits, n_labels = online_code_length(dataset, config, control=False)
    nats, _ = online_code_length(dataset, config, control=False, legacy=True)
    first = online_steps(int(n_labels[0]) // 8)[0] * 8 * np.log2(3)
    np.testing.assert_allclose((bits - first) * np.log(2), nats - first, rtol=1e-6)
    assert bits[0, 0, 0] > nats[0, 0, 0]


def test_portions_are_those_of_the_paper_if_there_are_enough_sentences() -> None:
    assert online_steps(10_000) == [10, 20, 40, 80, 160, 320, 625, 1250, 2500, 5000, 10_000]
    assert online_steps(3) == [1, 2, 3]
