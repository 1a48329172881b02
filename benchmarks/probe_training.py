"""Speed of training attention probes: batches with all seeds at once, compared with one sentence at a time.

    python benchmarks/probe_training.py                 # 200 synthetic sentences, 3 seeds, about a minute
    python benchmarks/probe_training.py --sentences 60  # a quick look

One epoch of the attention-and-words probe (clark2019) on synthetic attention of 144 heads, with lengths as in running
text. The methods differ in batching, and so in the number of updates; ratios compare the time of one epoch of all
seeds.

| method | meaning |
|---|---|
| batched | as in bertology: sentences of similar length and all seeds in one step, attention in float16 |
| one sentence, one seed | the same probe, one sentence per step, one seed after the other, attention in float32 |
| as published | likewise, with a dense layer over features words' vectors for the weights of every pair |
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from bertology.analyses.heads.parsing_probe.dataset import BATCH_WORDS
from bertology.analyses.heads.parsing_probe.models import ArcBatch, AttentionWordsProbe, train_arc_probe
from bertology.recording.plan import length_batches
from timing import NAME_WIDTH, Run, interleave, measure_time, print_header, print_row

HEADS, WIDTH = 144, 100


class PublishedProbe(nn.Module):
    """One seed, one sentence: a dense layer weights each head and its transpose for every pair of words."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.weights = nn.Linear(2 * WIDTH, 2 * HEADS)
        self.mixture = nn.Parameter(torch.ones(2))

    def forward(self, batch: ArcBatch) -> Tensor:
        """(1, 1, word, candidate) scores."""
        attention, words = batch.attention[0], batch.attention.shape[1]
        features = torch.cat([attention.transpose(1, 2), attention.permute(2, 0, 1)], -1)
        special = batch.special_attention[0].unflatten(-1, (2, 2)).transpose(1, 2).flatten(1, 2) @ self.mixture
        features = torch.cat([special[:, None], features], 1)
        candidates = torch.cat([torch.zeros(1, WIDTH), batch.vectors[0]])
        pairs = torch.cat([candidates.expand(words, -1, -1), batch.vectors[0][:, None].expand(-1, words + 1, -1)], -1)
        scores = (self.weights(pairs) * features).sum(-1)
        is_self = torch.eye(words, words + 1, dtype=torch.bool).roll(1, 1)
        return scores.masked_fill(is_self, float("-inf"))[None, None]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sentences", type=int, default=200, help="number of sentences")
    parser.add_argument("--n-seeds", type=int, default=3, help="number of probes")
    parser.add_argument("--rounds", type=int, default=3, help="number of interleaved repetitions")
    parser.add_argument("--threads", type=int, default=1, help="torch threads")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    sentences = [_synthetic_sentence(seed) for seed in range(options.sentences)]
    seeds = list(range(options.n_seeds))
    methods: dict[str, Run] = {
        "one sentence, one seed": lambda: _one_at_a_time(sentences, seeds, published=False),
        "as published": lambda: _one_at_a_time(sentences, seeds, published=True),
    }
    batches = _pad_batches(sentences)
    fast = lambda: _train([AttentionWordsProbe(HEADS, WIDTH, seeds)], batches)  # noqa: E731  # one of the methods
    measure_time(fast)  # warms up
    ratios, seconds = interleave(fast, methods, options.rounds)
    words = sum(sentence.gold.shape[1] for sentence in sentences)
    print(
        f"{len(sentences)} sentences, {words} words, {HEADS} heads, vectors of {WIDTH}, {len(seeds)} seeds, one epoch"
    )
    print_header()
    print(f"{f'batched: {len(batches)} batches':<{NAME_WIDTH}}{seconds:>9.2f}     1.00     1.00")
    for name, ratio in ratios.items():
        print_row(name, ratio)
    print(f"\nbatched: {len(sentences) * len(seeds) / seconds:.0f} sentences x seeds per second")


def _synthetic_sentence(seed: int) -> ArcBatch:
    """A random sentence whose length is log-normal around 13 words, as in a treebank of web text."""
    generator = np.random.default_rng(seed)
    words = int(np.clip(generator.lognormal(2.5, 0.75), 2, 80))
    attention = torch.from_numpy(generator.dirichlet(np.full(words + 2, 0.3), (words, HEADS)).astype(np.float32))
    gold = (np.arange(words) + 1 + generator.integers(1, words + 1, words)) % (words + 1)
    special = torch.cat([attention[..., -2:], attention[..., -2:]], -1)
    vectors = torch.from_numpy(generator.normal(0, WIDTH**-0.5, (1, words, WIDTH)).astype(np.float32))
    word_mask = torch.ones(1, words, dtype=torch.bool)
    return ArcBatch(attention[None, ..., :words], special[None], vectors, torch.from_numpy(gold)[None], word_mask)


def _pad_batches(sentences: Sequence[ArcBatch]) -> list[ArcBatch]:
    lengths = [sentence.gold.shape[1] for sentence in sentences]
    return [_pad([sentences[index] for index in indices]) for indices in length_batches(lengths, BATCH_WORDS)]


def _pad(sentences: Sequence[ArcBatch]) -> ArcBatch:
    size = max(sentence.gold.shape[1] for sentence in sentences)

    def padded(tensor: Tensor, shape: tuple[int, ...], fill_value: float = 0) -> Tensor:
        output = torch.full((1, *shape), fill_value, dtype=tensor.dtype)
        output[tuple(slice(n) for n in tensor.shape)] = tensor
        return output

    return ArcBatch(
        torch.cat([padded(s.attention, (size, HEADS, size)) for s in sentences]).half(),
        torch.cat([padded(s.special_attention, (size, HEADS, 4)) for s in sentences]).half(),
        torch.cat([padded(s.vectors, (size, WIDTH)) for s in sentences]),
        torch.cat([padded(s.gold, (size,), -1) for s in sentences]),
        torch.cat([padded(s.word_mask, (size,), False) for s in sentences]),
    )


def _train(probes: Sequence[nn.Module], batches: Sequence[ArcBatch]) -> None:
    for probe in probes:
        train_arc_probe(probe, batches, epochs=1, learning_rate=0.002, seed=0)


def _one_at_a_time(sentences: Sequence[ArcBatch], seeds: Sequence[int], *, published: bool) -> None:
    _train([PublishedProbe(s) if published else AttentionWordsProbe(HEADS, WIDTH, [s]) for s in seeds], sentences)


if __name__ == "__main__":
    main()
