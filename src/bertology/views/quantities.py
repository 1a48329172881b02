"""What can be looked at besides attention, as sites: the norms of kobayashi2020, attention times its gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bertology.measures.attention.value_vectors import head_vectors
from bertology.recording.sites import ReducedSite

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame


def _norms(layer: LayerActivations, _frame: Frame, _prepared: Any) -> Tensor:
    """(batch, head, from, to) the length of attention x f(x)."""
    return layer.attention.float() * head_vectors(layer).norm(dim=-1).unsqueeze(2)


def _graded(layer: LayerActivations, _frame: Frame, _prepared: Any) -> Tensor:
    """(batch, head, from, to) attention x gradient, with its sign."""
    assert layer.gradient is not None, "declared as a gradient site"
    return (layer.attention * layer.gradient).detach()


def _lengths(layer: LayerActivations, _frame: Frame, _prepared: Any) -> Tensor:
    """(batch, head, piece) the length of f(x); NaN in families whose output projection is not known."""
    if layer.block is None or layer.value is None:
        return layer.attention.new_full(layer.attention.shape[:3], float("nan"))
    return head_vectors(layer).norm(dim=-1)


LENGTHS = ReducedSite("view.length", ("piece",), "length of f(x)", _lengths, vectors=True)
_MAP = ("from", "to")
SITES: dict[str, ReducedSite] = {
    "norm": ReducedSite("view.norm", _MAP, "length of attention x f(x)", _norms, vectors=True),
    "gradient": ReducedSite("view.gradient", _MAP, "attention x its gradient", _graded, gradient=True),
}
