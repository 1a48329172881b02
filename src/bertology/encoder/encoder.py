"""The protocol of an encoder: a model as a function from pieces to activations, with few members, kept few."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from bertology.corpus.corpus import Input
from bertology.encoder.pieces import Pieces

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import Gates, LayerActivations


@dataclass(frozen=True)
class Batch:
    """Inputs of similar length, padded on the right: (batch, piece)."""

    ids: Tensor
    types: Tensor
    mask: Tensor


@dataclass(frozen=True)
class Output:
    """What a forward pass returned: hidden states from the embeddings up, and the logits of each head of the model.

    `pieces` are (batch, k) the pieces that logits by piece are of; None: all of them in their order.
    """

    hidden: tuple[Tensor, ...]
    logits: Mapping[str, Tensor]
    pieces: Tensor | None = None


Objective = Callable[[Output], "Tensor"]


class Encoder(Protocol):
    """A model that turns texts into activations.

    `layers` and `heads` are 0 for encoders without attention (static vectors); `outputs` names the heads on top
    (`mlm`, `nsp`, `label`, `token`, `answer_start`, `choice` ...), empty for a bare encoder.
    """

    @property
    def name(self) -> str:
        """What the user calls it."""
        ...

    @property
    def fingerprint(self) -> str:
        """A hash: equal function, equal fingerprint."""
        ...

    @property
    def layers(self) -> int:
        """How many layers attend."""
        ...

    @property
    def heads(self) -> int:
        """Heads in each layer."""
        ...

    @property
    def width(self) -> int:
        """Size of a hidden state."""
        ...

    @property
    def max_pieces(self) -> int:
        """The longest input, special tokens included."""
        ...

    @property
    def outputs(self) -> frozenset[str]:
        """The heads on top of the encoder."""
        ...

    @property
    def causal(self) -> bool:
        """Whether a piece sees only what is before it."""
        ...

    @property
    def reach(self) -> tuple[int | None, ...]:
        """By layer, how many pieces away a piece sees, None as far as there are any; empty where all layers do."""
        ...

    @property
    def mask_id(self) -> int | None:
        """The id of the mask token, if there is one."""
        ...

    @property
    def device(self) -> str:
        """Where tensors must be for `run`."""
        ...

    def tokenise(self, inputs: Sequence[Input]) -> list[Pieces]:
        """The pieces of each input, special tokens included, nothing truncated."""
        ...

    def run(
        self,
        batch: Batch,
        *,
        on_layer: Callable[[LayerActivations], None] | None = None,
        hidden: bool = False,
        objective: Objective | None = None,
    ) -> Output:
        """One forward pass.

        `on_layer` sees each layer's attention while it exists. With an `objective` (a scalar of the output) each
        layer also carries the gradient of that scalar with respect to its attention map.
        """
        ...


class GatedEncoder(Encoder, Protocol):
    """An encoder whose heads can be scaled, made uniform, or kept from reading some pieces."""

    def gated(self, gates: Gates | None) -> Encoder:
        """The same weights with these gates on every pass."""
        ...


@runtime_checkable
class Randomisable(Protocol):
    """An encoder that can make a copy of itself with fresh weights."""

    def randomised(self, seed: int = 0) -> GatedEncoder:
        """The same architecture, fresh weights."""
        ...
