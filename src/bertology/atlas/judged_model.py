"""`JudgedModel`: the verdicts of one model with the numbers behind them, as they are stored and compared."""

from __future__ import annotations

import base64
import math

import numpy as np
from pydantic import BaseModel, ConfigDict

from bertology.arrays import FloatArray
from bertology.claims.rounding import Unit
from bertology.claims.verdict import Outcome
from bertology.results.drawing.strip import StripMark
from bertology.views.report.findings import Status


class AtlasRecord(BaseModel):
    """A frozen value that is written as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Effect(AtlasRecord):
    """How far the tested number lies beyond what it is compared with, as the finding says; below it, it is negative.

    `resampled` are its values over resamples of `n_rows` sentences (float32, base64), of which `n` were measured. In
    two models as many sentences of one corpus are resampled together, so that their difference is paired.
    `standard_error` is None without sampling error.
    """

    value: float
    standard_error: float | None = None
    n: int = 0
    n_rows: int = 0
    resampled: str = ""

    def resamples(self) -> FloatArray | None:
        """(resample,) values; None if there are none."""
        if not self.resampled:
            return None
        return np.frombuffer(base64.b64decode(self.resampled), np.float32).astype(np.float64)


def encode_resamples(values: FloatArray | None) -> str:
    """The values as text; empty if there are none, or not all are numbers."""
    if values is None or not np.isfinite(values).all():
        return ""
    return base64.b64encode(values.astype(np.float32).tobytes()).decode()


class CurvePeak(AtlasRecord):
    """The layer at which a curve is highest, or lowest; `low` and `high` are the first and last that may be.

    Layer 0 is the embeddings; divided by `n_layers` it is the relative depth, by which models are compared.
    """

    measure: str
    layer: int
    low: int
    high: int
    n_layers: int
    is_lowest: bool = False

    @property
    def depths(self) -> tuple[float, float, float]:
        """The relative depth of the peak, and of the first and last layer that may be it."""
        return self.layer / self.n_layers, self.low / self.n_layers, self.high / self.n_layers


class HeadCount(AtlasRecord):
    """How many heads pass the test of a finding, and the best head beside that of as many random heads.

    `random_best` is the expected highest value of as many heads drawn from the untrained model.
    """

    n_passing: int
    n_heads: int
    best: float
    random_best: float | None = None


class JudgedFinding(AtlasRecord):
    """The verdict on one finding for one model.

    `marks` are its numbers on the `axis`: estimate, baseline, untrained, published, required. `number` and `interval`
    are the estimate as text, `position` its head or layers. `corpora` are the fingerprints of what it was measured on.
    """

    id: str
    outcome: Outcome
    status: Status
    qualification: str = ""
    headline: str
    answer: str
    obstacle: str = ""
    unit: Unit = "number"
    marks: tuple[StripMark, ...] = ()
    axis: tuple[float, float] = (0.0, 1.0)
    number: str = ""
    interval: str = ""
    position: str = ""
    effect: Effect | None = None
    peak: CurvePeak | None = None
    heads: HeadCount | None = None
    corpora: tuple[str, ...] = ()
    filled_from: str = ""


class JudgedModel(AtlasRecord):
    """One model and all of its verdicts. `name` is unique in an atlas, `source` is what it was loaded by.

    `added_from` is the file of an earlier atlas that it was read from; empty if it was judged here.
    """

    name: str
    source: str
    fingerprint: str
    architecture: str = ""
    n_layers: int
    n_heads: int
    width: int
    n_parameters: int | None = None
    is_trained: bool = True
    unknown_tokens: str = ""
    added_from: str = ""
    findings: tuple[JudgedFinding, ...]

    def find(self, id: str) -> JudgedFinding | None:
        """The verdict on a finding; None if it was not judged."""
        return next((finding for finding in self.findings if finding.id == id), None)

    @property
    def size(self) -> str:
        """Layers by heads and the number of parameters, as text: `8 × 8, 5 M`."""
        heads = f"{self.n_layers} × {self.n_heads}" if self.n_heads else f"{self.n_layers} layers"
        return heads if self.n_parameters is None else f"{heads}, {format_count(self.n_parameters)}"


def format_count(n: int) -> str:
    """A number of parameters in two digits: 5.1 M, 33 M, 1.2 G."""
    power = min(int(math.log10(max(n, 1))) // 3, 3)
    return f"{float(f'{n / 1000**power:.2g}'):g} {('', 'k', 'M', 'G')[power]}".rstrip()


class NotJudged(AtlasRecord):
    """A model that could not be judged, and why; the others were.

    `is_failure` says that the machine or the program failed, and not that the model does not fit.
    """

    name: str
    reason: str
    is_failure: bool = False
