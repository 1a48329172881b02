"""How fast attention probes are trained: all sentences of a bucket and all seeds at once, beside one at a time.

    python benchmarks/probe_training.py                 # 200 made sentences, 3 seeds, about a minute
    python benchmarks/probe_training.py --sentences 60  # a quick look

One epoch of the attention-and-words probe (clark2019), on made maps of 144 heads, with lengths as in running text. The
ways differ in how they go through the data, and so in the number of updates; the ratio is of the time that an epoch
of all seeds takes.

| way | is |
|---|---|
| batched | as bertology trains: a batch of similar length and all seeds in one step, maps in float16 |
| one sentence, one seed | the same probe, a sentence a step, one seed after the other, maps ready in float32 |
| as published | likewise, the weights of every pair of words by a dense layer over both words' vectors |
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

MAPS, WIDTH = 144, 100


class PublishedProbe(nn.Module):
    """One seed and one sentence: a dense layer gives every pair of words its weights for all maps and transposes."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.weights = nn.Linear(2 * WIDTH, 2 * MAPS)
        self.mixture = nn.Parameter(torch.ones(2))

    def forward(self, batch: ArcBatch) -> Tensor:
        """(1, 1, word, candidate) scores."""
        maps, words = batch.attention[0], batch.attention.shape[1]
        both = torch.cat([maps.transpose(1, 2), maps.permute(2, 0, 1)], -1)
        edges = batch.special_attention[0].unflatten(-1, (2, 2)).transpose(1, 2).flatten(1, 2) @ self.mixture
        both = torch.cat([edges[:, None], both], 1)
        candidates = torch.cat([torch.zeros(1, WIDTH), batch.vectors[0]])
        pairs = torch.cat([candidates.expand(words, -1, -1), batch.vectors[0][:, None].expand(-1, words + 1, -1)], -1)
        scores = (self.weights(pairs) * both).sum(-1)
        barred = torch.eye(words, words + 1, dtype=torch.bool).roll(1, 1)
        return scores.masked_fill(barred, float("-inf"))[None, None]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3, help="times each way is run")
    parser.add_argument("--threads", type=int, default=1, help="torch threads")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    sentences = [_made(seed) for seed in range(options.sentences)]
    seeds = list(range(options.seeds))
    ways: dict[str, Run] = {
        "one sentence, one seed": lambda: _one_at_a_time(sentences, seeds, published=False),
        "as published": lambda: _one_at_a_time(sentences, seeds, published=True),
    }
    batched = _batched(sentences)
    fast = lambda: _train([AttentionWordsProbe(MAPS, WIDTH, seeds)], batched)  # noqa: E731  # one of the ways
    measure_time(fast)  # warms up
    found, seconds = interleave(fast, ways, options.rounds)
    words = sum(sentence.gold.shape[1] for sentence in sentences)
    print(f"{len(sentences)} sentences, {words} words, {MAPS} maps, vectors of {WIDTH}, {len(seeds)} seeds, one epoch")
    print_header()
    print(f"{f'batched: {len(batched)} batches':<{NAME_WIDTH}}{seconds:>9.2f}     1.00     1.00")
    for name, ratio in found.items():
        print_row(name, ratio)
    print(f"\nbatched: {len(sentences) * len(seeds) / seconds:.0f} sentences x seeds a second")


def _made(seed: int) -> ArcBatch:
    """One sentence of running text: its length log-normal around 13 words, as in a treebank of web text."""
    generator = np.random.default_rng(seed)
    words = int(np.clip(generator.lognormal(2.5, 0.75), 2, 80))
    maps = torch.from_numpy(generator.dirichlet(np.full(words + 2, 0.3), (words, MAPS)).astype(np.float32))
    gold = (np.arange(words) + 1 + generator.integers(1, words + 1, words)) % (words + 1)
    edges = torch.cat([maps[..., -2:], maps[..., -2:]], -1)
    vectors = torch.from_numpy(generator.normal(0, WIDTH**-0.5, (1, words, WIDTH)).astype(np.float32))
    there = torch.ones(1, words, dtype=torch.bool)
    return ArcBatch(maps[None, ..., :words], edges[None], vectors, torch.from_numpy(gold)[None], there)


def _batched(sentences: Sequence[ArcBatch]) -> list[ArcBatch]:
    lengths = [sentence.gold.shape[1] for sentence in sentences]
    return [_padded([sentences[place] for place in some]) for some in length_batches(lengths, BATCH_WORDS)]


def _padded(some: Sequence[ArcBatch]) -> ArcBatch:
    size = max(sentence.gold.shape[1] for sentence in some)

    def grown(tensor: Tensor, shape: tuple[int, ...], filler: float = 0) -> Tensor:
        whole = torch.full((1, *shape), filler, dtype=tensor.dtype)
        whole[tuple(slice(n) for n in tensor.shape)] = tensor
        return whole

    return ArcBatch(
        torch.cat([grown(s.attention, (size, MAPS, size)) for s in some]).half(),
        torch.cat([grown(s.special_attention, (size, MAPS, 4)) for s in some]).half(),
        torch.cat([grown(s.vectors, (size, WIDTH)) for s in some]),
        torch.cat([grown(s.gold, (size,), -1) for s in some]),
        torch.cat([grown(s.word_mask, (size,), False) for s in some]),
    )


def _train(probes: Sequence[nn.Module], lessons: Sequence[ArcBatch]) -> None:
    for probe in probes:
        train_arc_probe(probe, lessons, epochs=1, learning_rate=0.002, seed=0)


def _one_at_a_time(sentences: Sequence[ArcBatch], seeds: Sequence[int], *, published: bool) -> None:
    _train([PublishedProbe(s) if published else AttentionWordsProbe(MAPS, WIDTH, [s]) for s in seeds], sentences)


if __name__ == "__main__":
    main()
