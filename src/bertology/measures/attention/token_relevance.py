"""How much each input piece matters to what is read from a model: by attention, by gradients, by blanking it out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.encoder.encoder import Encoder
from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.maths.maximum_flow import layered_flows
from bertology.maths.rollout import Fusion, Rollout, mixed
from bertology.measures.passes import frames_of
from bertology.recording.plan import pieces_at_once
from bertology.recording.recording import Recording

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.encoder.encoder import Batch, Output
    from bertology.recording.frame import Frame

Floats = NDArray[np.float64]
Target = Literal["auto", "class", "masked", "cls", "mean"]

CLASSES = ("label", "choice", "nsp", "sop")
BY_LAYER = ("raw attention", "rollout", "flow")


@dataclass(frozen=True)
class How:
    """What is read and how relevance is found; `depths` are the layers (from 1) that attention is followed from."""

    target: Target
    residual: float
    fusion: Fusion
    depths: tuple[int, ...]
    directions: int
    sentences: int
    longest: int
    seed: int


class Relevance(NamedTuple):
    """One input's relevance: `pieces` are the ordinary ones that were not masked, `ids` those of all its pieces.

    `masked` is the piece whose word is asked for, -1 where none is. `by_layer` holds (depth, piece) for each kind of
    attention, `others` (piece,) for all else.
    """

    entry: int
    ids: NDArray[np.int32]
    pieces: NDArray[np.intp]
    masked: int
    by_layer: dict[str, Floats]
    others: dict[str, Floats]


def settled(target: Target, encoder: Encoder) -> Target:
    """The target that the model has, where it is left to choose; a target it has not is refused."""
    masked = "mlm" in encoder.outputs and encoder.mask_id is not None
    if target == "auto":
        classed = encoder.outputs & {"label", "choice"}
        target = "class" if classed else "masked" if masked else "mean"
    wanting = (target == "class" and not encoder.outputs & set(CLASSES)) or (target == "masked" and not masked)
    if wanting or encoder.mask_id is None:
        have = ", ".join(sorted(encoder.outputs)) or "none"
        raise Refusal(
            f"{encoder.name} has no mask token to blank pieces out with"
            if encoder.mask_id is None
            else f"{encoder.name} has no head for --target {target} (its heads: {have})",
            "a mask token, and a sentence-level head for `class` or a masked-language-model head for `masked`",
            "Use --target mean, which needs no head, or choose another model",
        )
    return target


def relevances(recording: Recording, encoder: Encoder, how: How) -> Iterator[Relevance]:
    """The relevance of the pieces of each drawn input of at most `longest` pieces, in no particular order."""
    for places, frame in frames_of(recording, encoder, sentences=how.sentences, seed=how.seed):
        short = [row for row, entry in enumerate(frame.entries) if len(entry.pieces) <= how.longest]
        if short:
            yield from _of_batch([places[row] for row in short], _some(frame, short), encoder, how)


def _some(frame: Frame, rows: Sequence[int]) -> Frame:
    from bertology.recording.frame import Frame

    return Frame([frame.entries[row] for row in rows], frame.device)


def _of_batch(places: Sequence[int], frame: Frame, encoder: Encoder, how: How) -> Iterator[Relevance]:
    import torch

    reading = _reading(frame, encoder, how)
    shares: list[Tensor] = []
    raw: list[Tensor] = []

    def see(layer: LayerActivations) -> None:
        shares.append(mixed(layer.attention.float(), how.fusion, how.residual))
        raw.append(mixed(layer.attention.float(), how.fusion, 0.0))

    with torch.no_grad():
        before = reading.read(encoder.run(reading.fed, on_layer=see, hidden=True))
    gradients = _gradients(reading, encoder, how)
    for row, entry in enumerate(frame.entries):
        length = len(entry.pieces)
        asked = reading.masked[row, :length].cpu().numpy()
        pieces = np.flatnonzero((entry.pieces.special == Special.NONE) & ~asked)
        weights = reading.weights[row, :length].cpu().double().numpy()
        own, alone = ([layer[row, :length, :length].cpu().double() for layer in some] for some in (shares, raw))
        by_layer = {
            name: np.stack([found[depth - 1] for depth in how.depths])[:, pieces]
            for name, found in _followed(weights, own, alone, how.depths).items()
        }
        others = {name: values[row].cpu().double().numpy()[pieces] for name, values in gradients.items()}
        others["blank-out"] = _blanked(reading, encoder, row, pieces, before[row])
        others["rarity"] = entry.pieces.ids[pieces].astype(np.float64)
        if weights.max() == 1:
            others["nearness"] = -np.abs(pieces - weights.argmax()).astype(np.float64)
        masked = int(asked.argmax()) if asked.any() else -1
        yield Relevance(places[row], entry.pieces.ids, pieces, masked, by_layer, others)


def _followed(
    weights: Floats, shares: list[Tensor], raw: list[Tensor], depths: tuple[int, ...]
) -> dict[str, dict[int, Floats]]:
    """For each depth (from 0) what each piece gives to what is read, which takes `weights` of the states there."""
    capacities = np.stack([layer.numpy() for layer in shares])
    top = np.tile(weights, (len(weights), 1))  # what is read is one more place above, as wide as its weights
    found: dict[str, dict[int, Floats]] = {name: {} for name in BY_LAYER}
    rollout = Rollout()
    for depth, layer in enumerate(shares):
        rolled = rollout.add(layer)
        if depth + 1 in depths:
            found["raw attention"][depth] = weights @ raw[depth].numpy()
            found["rollout"][depth] = weights @ rolled.numpy()
            single = weights.max() == 1
            below = capacities[: depth + 1] if single else np.concatenate([capacities[: depth + 1], top[None]])
            found["flow"][depth] = layered_flows(below, int(weights.argmax()) if single else 0)
    return found


class _Reading(NamedTuple):
    """What is fed and what is read: (batch, number) numbers from an output.

    `weights` is (batch, piece): of which states of the last layer the numbers are made; `masked` the pieces whose word
    is asked for.
    """

    frame: Frame
    fed: Batch
    masked: Tensor
    weights: Tensor
    read: _Read


class _Read(NamedTuple):
    """Reads a score of one class, a score of one word at one place, or a vector; `chosen` is (batch,)."""

    head: str | None
    weights: Tensor
    chosen: Tensor | None

    def __call__(self, output: Output) -> Tensor:
        """(batch, number), one number where it is a score."""
        import torch

        if self.head is None or self.chosen is None:
            return (output.hidden[-1].float() * self.weights.unsqueeze(-1)).sum(1)
        scores = output.logits[self.head]
        if self.head == "mlm":
            scores = scores[torch.arange(len(scores), device=scores.device), self.weights.argmax(1)]
        # The one score of an option has no rival: its log-probability would be 0 whatever the input.
        comparable = scores.float().log_softmax(-1) if scores.shape[-1] > 1 else scores.float()
        return comparable.gather(-1, self.chosen.unsqueeze(-1))

    def of_row(self, row: int, count: int) -> _Read:
        """The same for variants of one input."""
        chosen = None if self.chosen is None else self.chosen[row].expand(count)
        return _Read(self.head, self.weights[row].expand(count, -1), chosen)


def _reading(frame: Frame, encoder: Encoder, how: How) -> _Reading:
    import torch

    nothing = torch.zeros_like(frame.real)
    if how.target == "mean":
        even = frame.real.float() / frame.lengths[:, None]
        return _Reading(frame, frame.batch, nothing, even, _Read(None, even, None))
    if how.target == "masked":
        masked = frame.per_piece([_drawn(entry.pieces.ids, entry.pieces.special, how.seed) for entry in frame.entries])
        fed = replace(frame.batch, ids=torch.where(masked, encoder.mask_id or 0, frame.batch.ids))
        words = (frame.batch.ids * masked).sum(1)
        return _Reading(frame, fed, masked, masked.float(), _Read("mlm", masked.float(), words))
    first = _first(frame, encoder.causal)
    if how.target == "cls":
        return _Reading(frame, frame.batch, nothing, first, _Read(None, first, None))
    head = next(name for name in CLASSES if name in encoder.outputs)
    with torch.no_grad():
        top = encoder.run(frame.batch).logits[head].argmax(-1)
    return _Reading(frame, frame.batch, nothing, first, _Read(head, first, top))


def _first(frame: Frame, causal: bool) -> Tensor:
    """(batch, piece) 1 at the state that sentence-level heads read: the first, or the last of a causal model."""
    import torch

    place = frame.lengths - 1 if causal else torch.zeros_like(frame.lengths)
    return torch.nn.functional.one_hot(place, frame.width).float()


def _drawn(ids: NDArray[np.int32], special: NDArray[np.int32], seed: int) -> NDArray[np.bool_]:
    """One ordinary piece, drawn by the pieces and the seed alone, so that neither batches nor their order matter."""
    key = hashlib.sha256(b"masked" + ids.tobytes() + seed.to_bytes(8, "little")).digest()
    flags: NDArray[np.bool_] = np.zeros(len(ids), np.bool_)
    flags[np.random.default_rng(list(key)).permutation(np.flatnonzero(special == Special.NONE))[:1]] = True
    return flags


def _gradients(reading: _Reading, encoder: Encoder, how: How) -> dict[str, Tensor]:
    """(batch, piece) ‖∂s/∂x‖ and |x ∂s/∂x|, x being a piece's state before the first layer.

    Of a vector, which is no single score, the root mean square over random directions: of the whole Jacobian.
    """
    import torch

    with torch.enable_grad():
        output = encoder.run(reading.fed, hidden=True)
        numbers, states = reading.read(output), output.hidden[0]
        directions = torch.ones(1, 1)
        if numbers.shape[-1] > 1:
            generator = torch.Generator().manual_seed(how.seed)
            directions = torch.randn(how.directions, numbers.shape[-1], generator=generator)
        squares = [torch.zeros(states.shape[:2], device=states.device) for _ in range(2)]
        for direction in directions.to(numbers):
            (slope,) = torch.autograd.grad((numbers @ direction).sum(), states, retain_graph=True)
            squares[0] += slope.float().square().sum(-1) / len(directions)
            squares[1] += (slope * states.detach()).float().sum(-1).square() / len(directions)
    return {"gradient": squares[0].sqrt(), "gradient x input": squares[1].sqrt()}


def _blanked(reading: _Reading, encoder: Encoder, row: int, pieces: NDArray[np.intp], before: Tensor) -> Floats:
    """(piece,) by how much what is read changes when a piece is replaced by the mask token."""
    import torch

    fed = reading.fed
    length = len(reading.frame.entries[row].pieces)
    found: list[Tensor] = [torch.zeros(0)]
    at_once = max(1, pieces_at_once(encoder.device) // length)
    for start in range(0, len(pieces), at_once):
        some = torch.from_numpy(pieces[start : start + at_once]).to(fed.ids.device)
        ids, types, mask = (tensor[row, :length].repeat(len(some), 1) for tensor in (fed.ids, fed.types, fed.mask))
        ids[torch.arange(len(some), device=ids.device), some] = encoder.mask_id or 0
        read = reading.read.of_row(row, len(some))
        read = read._replace(weights=read.weights[:, :length])
        with torch.no_grad():
            after = read(encoder.run(replace(fed, ids=ids, types=types, mask=mask), hidden=read.head is None))
        found.append((after - before).norm(dim=-1).cpu())
    return torch.cat(found).double().numpy()
