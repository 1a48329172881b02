"""Classify attention patterns by a small convolutional network trained on synthetic patterns.

A pattern of any length becomes two images of 32 x 32 cells, in logarithms: the full pattern, averaged or stretched,
each cell relative to uniform attention; and the band within 16 tokens of the diagonal, offset by offset, since in the
first image a cell of a long pattern is several tokens wide and anything near the diagonal looks like a diagonal. Three
convolutions and one linear layer (6,725 weights) classify them; Kovaleva et al. used eight convolutions and 400
patterns labelled by hand, neither of which they released. The weights are stored next to this file; `python -m
bertology.analyses.attention_patterns.cnn_classifier` trains them again.

The training patterns have 8 to 128 tokens. For noisy patterns of about 10 tokens the rule is more reliable (macro-F1 of
patterns with noise 0.37: 0.95 to 1 by the rule at every length; by the CNN 0.93 at 9 and 11 tokens, 0.96 at 14, 0.98 to
1 from 28 to 400).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from bertology.analyses.attention_patterns.synthetic import PATTERN_CLASSES, synthetic_training_set

WEIGHTS = Path(__file__).with_name("cnn_classifier.safetensors")
IMAGE_SIZE = 32
FLOOR = 1 / 16
"""Added to cells (as a fraction of uniform attention) before the logarithm, so that small weights look alike."""

TRAIN_SIZE, EPOCHS, BATCH_SIZE, LEARNING_RATE, SEED = 20000, 20, 100, 2e-3, 0


def build_pattern_cnn() -> nn.Sequential:
    """The untrained network: (pattern, 2, 32, 32) images in, (pattern, class) scores out."""
    layers: list[nn.Module] = []
    for n_inputs, n_outputs in ((2, 8), (8, 16), (16, 24)):
        layers += [nn.Conv2d(n_inputs, n_outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(24 * (IMAGE_SIZE // 8) ** 2, len(PATTERN_CLASSES)))


@cache
def load_pattern_cnn(device: str = "cpu") -> nn.Sequential:
    """The network with the weights of the package."""
    model = build_pattern_cnn()
    model.load_state_dict(load_file(WEIGHTS))
    return model.eval().requires_grad_(False).to(device)


def attention_images(attention: Tensor) -> Tensor:
    """(..., 2, 32, 32) images of (..., from, to) attention without padding."""
    size = attention.shape[-1]
    cells = _cell_weights(size).to(attention)
    images = torch.stack([cells @ attention @ cells.T * size, cells @ _diagonal_band(attention) * IMAGE_SIZE], -3)
    return (images.clamp(min=0) + FLOOR).log2() / 4


def _diagonal_band(attention: Tensor) -> Tensor:
    """(..., from, 32) weights at offsets from -16 to 15, 0 beyond the ends."""
    sources = torch.arange(attention.shape[-1], device=attention.device)
    columns = sources[:, None] + torch.arange(IMAGE_SIZE, device=attention.device)
    padded = nn.functional.pad(attention, (IMAGE_SIZE // 2, IMAGE_SIZE // 2))
    return padded.gather(-1, columns.expand(*attention.shape[:-1], IMAGE_SIZE))


@cache
def _cell_weights(size: int) -> Tensor:
    """(32, size) weight of each token in each cell; cells have equal width."""
    edges = np.linspace(0, size, IMAGE_SIZE + 1)
    starts, ends = np.maximum.outer(edges[:-1], np.arange(size)), np.minimum.outer(edges[1:], np.arange(1, size + 1))
    overlap = np.clip(ends - starts, 0, None)
    return torch.from_numpy((overlap / overlap.sum(1, keepdims=True)).astype(np.float32))


def classify_by_cnn(attention: Tensor) -> Tensor:
    """(...) index into `PATTERN_CLASSES` of (..., from, to) attention without padding."""
    images = attention_images(attention)
    scores = load_pattern_cnn(str(attention.device))(images.reshape(-1, *images.shape[-3:]).float())
    return scores.argmax(-1).view(images.shape[:-3])


def train_pattern_cnn(train_size: int = TRAIN_SIZE, epochs: int = EPOCHS, seed: int = SEED) -> nn.Sequential:
    """A network trained on synthetic patterns; reproducible with one thread."""
    torch.manual_seed(seed)
    model = build_pattern_cnn()
    examples = synthetic_training_set(train_size, seed)
    images = torch.stack([attention_images(torch.from_numpy(attention).float()) for attention, _ in examples])
    classes = torch.tensor([index for _, index in examples])
    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, 2 * LEARNING_RATE, total_steps=epochs * -(-train_size // BATCH_SIZE)
    )
    for epoch in range(epochs):
        order = np.random.default_rng([seed, epoch]).permutation(train_size)
        for batch in np.array_split(order, -(-train_size // BATCH_SIZE)):
            loss = nn.functional.cross_entropy(model(images[batch]), classes[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return model.eval()


if __name__ == "__main__":
    torch.set_num_threads(1)
    save_file(train_pattern_cnn().state_dict(), WEIGHTS)
