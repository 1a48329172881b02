"""How a recording is made: what happens to over-long inputs, in which precision, by which objective."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Long = Literal["error", "skip", "truncate", "window"]


@dataclass(frozen=True)
class Policy:
    """How to record. All but `batch_pieces` can change the numbers and are part of a recording's address.

    `long` says what happens to inputs longer than `max_pieces` (or the encoder's own limit); `half` keeps raw sites
    in float16; `objective`, one of `objectives.OBJECTIVES`, and `seed` are for gradient sites; `batch_pieces`
    bounds a batch, padding included, and is chosen by device where it is None.
    """

    long: Long = "error"
    max_pieces: int | None = None
    half: bool = False
    objective: str = "auto"
    seed: int = 0
    batch_pieces: int | None = None

    def addressed(self) -> dict[str, Any]:
        """The part of the policy that the numbers depend on."""
        return {name: value for name, value in asdict(self).items() if name != "batch_pieces"}
