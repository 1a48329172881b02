"""Convolutional text classifiers with max pooling over words (Kim 2014), many at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertology.analyses.frozen_features.batched_training import Parameters, dropout, scaled_normal
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

DROPOUT = 0.5


@dataclass(frozen=True)
class TextCnn:
    """`filters` filters for each kernel size (words), ReLU, max pooling over the text, and a linear layer."""

    classes: int
    filters: int = 32
    kernel_sizes: tuple[int, ...] = (3, 4, 5)
    is_sequence_labelling: bool = False

    def init(self, width: int, seed: int) -> Parameters:
        """Random filters, and small random weights in the output layer."""
        generator = torch.Generator().manual_seed(seed)
        filters = {
            f"filters_{size}": scaled_normal(generator, size * width, self.filters).unflatten(0, (size, width))
            for size in self.kernel_sizes
        }
        output = {
            "bias": torch.zeros(len(self.kernel_sizes), self.filters),
            "output": 0.1 * scaled_normal(generator, len(self.kernel_sizes) * self.filters, self.classes),
            "output_bias": torch.zeros(self.classes),
        }
        return filters | output

    def losses(
        self, parameters: Parameters, x: Tensor, step_mask: Tensor, labels: Tensor, noise: torch.Generator | None
    ) -> Tensor:
        """(model, batch) cross-entropy."""
        scores = self._scores(parameters, x, step_mask, noise)
        return -scores.log_softmax(-1).gather(-1, labels[..., None])[..., 0]

    def predict(self, parameters: Parameters, x: Tensor, step_mask: Tensor) -> Tensor:
        """(model, batch) the class with the highest score."""
        return self._scores(parameters, x, step_mask, None).argmax(-1)

    def _scores(self, parameters: Parameters, x: Tensor, step_mask: Tensor, noise: torch.Generator | None) -> Tensor:
        pooled = [self._max_pool(parameters, index, x, step_mask) for index in range(len(self.kernel_sizes))]
        hidden = dropout(torch.cat(pooled, -1), DROPOUT, noise)
        return torch.einsum("mbf,mfc->mbc", hidden, parameters["output"]) + parameters["output_bias"][:, None]

    def _max_pool(self, parameters: Parameters, size_index: int, x: Tensor, step_mask: Tensor) -> Tensor:
        """(model, batch, filter); a window starts at every word of the text, and is padded with zeros after its end."""
        size = self.kernel_sizes[size_index]
        batch, steps = x.shape[1:3]
        padded = torch.nn.functional.pad(x * step_mask[..., None], (0, 0, 0, size - 1))
        # One product per word of the window, summed with shifts: no windows in memory.
        products = padded.flatten(1, 2)[:, None] @ parameters[f"filters_{size}"]
        products = products.unflatten(2, (batch, steps + size - 1))
        summed = sum((products[:, word, :, word : word + steps] for word in range(size)), x.new_zeros(()))
        activations = (summed + parameters["bias"][:, size_index, None, None]).relu()
        return activations.masked_fill(~step_mask[..., None], 0).amax(2)
