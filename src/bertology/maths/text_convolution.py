"""A convolution over words with the largest answer of each filter (Kim 2014), many at once; no BERT here."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from bertology.maths.stacked_training import Parameters, dropped, weights

DROPOUT = 0.5


@dataclass(frozen=True)
class TextConvolution:
    """`filters` filters over 3, 4 and 5 words each, ReLU, the largest over the text, and a score for each class."""

    classes: int
    filters: int = 32
    sizes: tuple[int, ...] = (3, 4, 5)
    by_step: bool = False

    def start(self, width: int, seed: int) -> Parameters:
        """Random filters and a last layer that knows nothing."""
        generator = torch.Generator().manual_seed(seed)
        filters = {
            f"filters {size}": weights(generator, size * width, self.filters).unflatten(0, (size, width))
            for size in self.sizes
        }
        last = {
            "bias": torch.zeros(len(self.sizes), self.filters),
            "out": 0.1 * weights(generator, len(self.sizes) * self.filters, self.classes),
            "out bias": torch.zeros(self.classes),
        }
        return filters | last

    def losses(
        self, parameters: Parameters, x: Tensor, real: Tensor, labels: Tensor, noise: torch.Generator | None
    ) -> Tensor:
        """(model, batch) cross-entropy."""
        scores = self._scores(parameters, x, real, noise)
        return -scores.log_softmax(-1).gather(-1, labels[..., None])[..., 0]

    def answers(self, parameters: Parameters, x: Tensor, real: Tensor) -> Tensor:
        """(model, batch) the class with the highest score."""
        return self._scores(parameters, x, real, None).argmax(-1)

    def _scores(self, parameters: Parameters, x: Tensor, real: Tensor, noise: torch.Generator | None) -> Tensor:
        found = [self._largest(parameters, place, x, real) for place in range(len(self.sizes))]
        hidden = dropped(torch.cat(found, -1), DROPOUT, noise)
        return torch.einsum("mbf,mfc->mbc", hidden, parameters["out"]) + parameters["out bias"][:, None]

    def _largest(self, parameters: Parameters, place: int, x: Tensor, real: Tensor) -> Tensor:
        """(model, batch, filter); a filter may begin at any word that is there, and sees zeros behind the text."""
        size = self.sizes[place]
        batch, steps = x.shape[1:3]
        padded = functional.pad(x * real[..., None], (0, 0, 0, size - 1))
        # A product for each word of the window, added where it belongs, instead of windows written out.
        products = padded.flatten(1, 2)[:, None] @ parameters[f"filters {size}"]
        products = products.unflatten(2, (batch, steps + size - 1))
        summed = sum((products[:, word, :, word : word + steps] for word in range(size)), x.new_zeros(()))
        answers = (summed + parameters["bias"][:, place, None, None]).relu()
        return answers.masked_fill(~real[..., None], 0).amax(2)
