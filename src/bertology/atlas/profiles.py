"""Profiles of models, their effects over all findings, on a map; its uncertainty is by resampling findings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bertology.arrays import FloatArray
from bertology.atlas.judged_model import AtlasRecord, JudgedModel
from bertology.numerics.kmeans import principal_axes
from bertology.numerics.procrustes import rotate_onto

MIN_MODELS, MIN_FINDINGS = 3, 5
MIN_SHARE = 0.5
"""A model is on the map if at least this share of the findings was measured for it."""
N_RESAMPLES = 200
ELLIPSE_SCALE = 5.991
"""The square of the radius of a circle that holds 95 % of a normal distribution in the plane."""


class MapPosition(AtlasRecord):
    """A model on the map, with the ellipse that holds 95 % of its positions over resamples of the findings.

    `radii` are the half-axes of the ellipse, `angle` that of the first one in degrees.
    """

    model: str
    x: float
    y: float
    radii: tuple[float, float]
    angle: float

    @property
    def extent(self) -> tuple[float, float]:
        """Half the width and height of the ellipse."""
        turn = np.radians(self.angle)
        (a, b), cosine, sine = self.radii, float(np.cos(turn)), float(np.sin(turn))
        return float(np.hypot(a * cosine, b * sine)), float(np.hypot(a * sine, b * cosine))


class ProfileMap(AtlasRecord):
    """The models in the plane in which their profiles differ most; `explained` is the share of their variance in it."""

    positions: tuple[MapPosition, ...]
    n_findings: int
    explained: float


def map_models(models: Sequence[JudgedModel], *, seed: int = 0) -> ProfileMap | None:
    """The map; None for fewer than three models or five findings that tell models apart."""
    ids = list(dict.fromkeys(finding.id for model in models for finding in model.findings))
    effects = np.array([[_effect(model, id) for id in ids] for model in models]).reshape(len(models), len(ids), 2)
    is_mapped = np.isfinite(effects[..., 0]).mean(1) >= MIN_SHARE if ids else np.zeros(len(models), np.bool_)
    profiles = _standardise(effects[is_mapped])
    if profiles.shape[0] < MIN_MODELS or profiles.shape[1] < MIN_FINDINGS:
        return None
    plane = _to_plane(profiles)
    generator = np.random.default_rng(seed)
    n_findings = profiles.shape[1]
    draws = [generator.integers(n_findings, size=n_findings) for _ in range(N_RESAMPLES)]
    clouds = np.stack([rotate_onto(_to_plane(profiles[:, draw]), plane) for draw in draws], 1)
    names = [model.name for model, mapped in zip(models, is_mapped, strict=True) if mapped]
    positions = tuple(_position(*part) for part in zip(names, plane, clouds, strict=True))
    total = float(np.square(profiles - profiles.mean(0)).sum())
    return ProfileMap(positions=positions, n_findings=n_findings, explained=float(np.square(plane).sum()) / total)


def _effect(model: JudgedModel, id: str) -> tuple[float, float]:
    finding = model.find(id)
    if finding is None or finding.effect is None or finding.unit == "layer":
        return np.nan, np.nan
    return finding.effect.value, finding.effect.standard_error or 0.0


def _standardise(effects: FloatArray) -> FloatArray:
    """(model, finding) effects around their mean, each finding with the share of its variance that is not noise.

    Findings in which the models differ no more than sampling would let them are left out. A missing effect is the mean.
    """
    values, errors = effects[..., 0], effects[..., 1]
    measured = np.isfinite(values)
    columns: list[FloatArray] = []
    for value, error, known in zip(values.T, errors.T, measured.T, strict=True):
        if known.sum() < MIN_MODELS:
            continue
        variance, noise = float(value[known].var(ddof=1)), float(np.square(error[known]).mean())
        if variance <= noise or variance <= 0.0:
            continue
        centred = np.where(known, value - value[known].mean(), 0.0)
        columns.append(centred * np.sqrt((variance - noise) / variance) / np.sqrt(variance))
    return np.stack(columns, 1) if columns else np.zeros((len(values), 0))


def _to_plane(profiles: FloatArray) -> FloatArray:
    axes = principal_axes(profiles - profiles.mean(0), 2)
    return np.pad(axes[:, :2], ((0, 0), (0, 2 - min(2, axes.shape[1]))))


def _position(model: str, point: FloatArray, cloud: FloatArray) -> MapPosition:
    covariance = np.cov(cloud.T)
    lengths, directions = np.linalg.eigh(covariance)
    small, large = np.sqrt(ELLIPSE_SCALE * np.maximum(lengths, 0.0))
    angle = float(np.degrees(np.arctan2(directions[1, 1], directions[0, 1])))
    return MapPosition(
        model=model, x=float(point[0]), y=float(point[1]), radii=(float(large), float(small)), angle=angle
    )
