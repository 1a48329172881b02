"""`LayerProbe`: the probes of this package as a scikit-learn classifier, for one layer or for the best of several."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from bertology.analyses.probing.dataset import ProbeDataset
from bertology.analyses.probing.fitting import VALIDATION_FRACTION, fit_probes, parse_probe
from bertology.arrays import Array, BoolArray
from bertology.corpus.hashing import seeded_hash
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.numerics.batched_classifier import UNUSED_LABEL, BatchedClassifiers, ClassifierConfig, fit_classifiers
from bertology.numerics.classifier_network import class_scores

if TYPE_CHECKING:
    from bertology.results.result import Result


class LayerProbe(ClassifierMixin, BaseEstimator):
    """A probe of hidden states: a classifier of one layer's vectors, in scikit-learn's interface.

    X is (example, layer, width), as `bertology.states` returns it, or the (example, width) matrix of one layer. As in
    all classifiers of scikit-learn, mistakes are a `ValueError`.

    layer
        The layer to predict from: 0 for the embeddings, 1 for the first layer, negative numbers count from the last;
        `best` for the one with the highest accuracy on held-out groups of the training data.
    probe
        The architecture, as in `bertology run probes/word --probe`: linear, rank:N, mlp:N or mlp:N:N.
    penalty
        L2 penalty of the mean loss. None: a linear probe averages four penalties by the likelihood of the held-out
        labels, others use one over the number of examples.
    validation_fraction
        Fraction of the groups that are held out to choose the layer and the penalty and to stop early.
    random_state
        Seed of the held-out groups and of initial weights.

    After `fit`: `layer_` (the layer in use), `layer_scores_` ((layer,) accuracy on the held-out groups; one layer if
    one was named), `classes_`, `n_layers_`. `bertology.probe` adds `result_`: accuracy, selectivity and compression of
    every layer on test data, with intervals and baselines.
    """

    result_: Result

    def __init__(
        self,
        layer: int | Literal["best"] = "best",
        *,
        probe: str = "linear",
        penalty: float | None = None,
        validation_fraction: float = VALIDATION_FRACTION,
        random_state: int = 0,
    ) -> None:
        self.layer = layer
        self.probe = probe
        self.penalty = penalty
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None) -> LayerProbe:  # scikit-learn's names
        """Fit on X and y; examples of one group, for example the words of a sentence, are held out together."""
        checked: tuple[Any, Any] = validate_data(self, X, y, allow_nd=True)  # pyright: ignore[reportAssignmentType]
        states, labels = checked
        check_classification_targets(labels)
        self.classes_, label_ids = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has 1 class, {self.classes_[0]!r}; LayerProbe needs at least 2 classes")
        group_ids = np.arange(len(labels)) if groups is None else np.asarray(groups)
        if group_ids.shape != labels.shape:
            raise ValueError(f"groups has the shape {group_ids.shape}, and y {labels.shape}")
        held_out = held_out_mask(group_ids, self.validation_fraction, int(self.random_state or 0))
        return self._fit_layers(_as_layers(states), label_ids, held_out)

    def fit_dataset(self, dataset: ProbeDataset, held_out: BoolArray) -> LayerProbe:
        """Fit on the training examples of a dataset, as the analyses do, with these examples held out."""
        self.classes_, label_ids = np.unique(dataset.train.labels.astype(np.str_), return_inverse=True)
        self.n_features_in_ = len(dataset.train.features)
        return self._fit_layers(dataset.train.features, label_ids, held_out)

    def _fit_layers(self, states: Array, label_ids: Array, held_out: BoolArray) -> LayerProbe:
        """Fit on (layer, example, width) states, and choose the layer by the held-out examples."""
        self.n_layers_, _, self.width_ = states.shape
        chosen = [self._layer_index()] if self.layer != "best" else list(range(self.n_layers_))
        features = np.array(states[chosen], np.float32)
        labels, classifier, seed = label_ids[None], self._classifier(), int(self.random_state or 0)
        fit = fit_probes if self.penalty is None else _fit_with_penalty
        fitted = fit(features, labels, held_out[None], len(self.classes_), classifier, (seed,))
        correct = fitted.predict(features[:, held_out])[:, 0] == label_ids[held_out]
        self.layer_scores_ = correct.mean(1)
        best = int(self.layer_scores_.argmax())
        self.layer_ = chosen[best]
        self._fitted, self._group = fitted, best
        return self

    def predict(self, X: Any) -> Array:
        """The most probable class of each example."""
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(1)]

    def predict_proba(self, X: Any) -> Array:
        """(example, class) probabilities, in the order of `classes_`."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Array:
        """(example, class) log-probabilities, in the order of `classes_`."""
        check_is_fitted(self)
        checked: Any = validate_data(self, X, reset=False, allow_nd=True)
        states = _as_layers(checked)
        n_layers, _, width = states.shape
        if (n_layers, width) != (self.n_layers_, self.width_):
            raise ValueError(
                f"X has {n_layers} layers of width {width}, but LayerProbe was fitted on {self.n_layers_} layers of "
                f"width {self.width_}"
            )
        # In double precision, so that the predictions for an example do not depend on the others.
        group, fitted = slice(self._group, self._group + 1), self._fitted
        vectors = torch.from_numpy(np.array(states[self.layer_][None], np.float64))
        x = (vectors - fitted.mean[group].double()) / fitted.std[group].double()
        scores = class_scores(fitted.config, x, fitted.parameters[group].double(), fitted.classes)
        return scores.log_softmax(2)[0, 0].T.numpy()

    def _classifier(self) -> ClassifierConfig:
        try:
            classifier = parse_probe(self.probe)
        except Refusal as refusal:
            raise ValueError(str(refusal)) from refusal
        if classifier.form == "bilinear":
            raise ValueError("bilinear probes are for pairs of spans; use linear, rank:N or mlp:N")
        if self.penalty is not None and self.penalty < 0:
            raise ValueError(f"penalty is {self.penalty}; expected a number of at least 0, or None")
        return classifier if self.penalty is None else replace(classifier, l2_penalties=(float(self.penalty),))

    def _layer_index(self) -> int:
        if not isinstance(self.layer, int | np.integer) or not -self.n_layers_ <= self.layer < self.n_layers_:
            raise ValueError(
                f"layer is {self.layer!r}; expected `best` or a number from 0 (embeddings) to {self.n_layers_ - 1}, a "
                "negative one counted from the last layer"
            )
        return int(self.layer) % self.n_layers_


def held_out_mask(groups: Array, fraction: float, seed: int) -> BoolArray:
    """(example,) whether it is held out: whole groups in an order given by the seed, at least one and never all."""
    names = np.unique(groups)
    if len(names) < 2:
        raise ValueError(
            f"Found {len(groups)} samples in 1 group; LayerProbe holds out some groups and needs at least 2"
        )
    if not 0 < fraction < 1:
        raise ValueError(f"validation_fraction is {fraction}; expected a number between 0 and 1")
    order = sorted(names.tolist(), key=lambda name: seeded_hash(str(name), seed))
    n_held_out = min(len(order) - 1, max(1, round(fraction * len(order))))
    return np.isin(groups, order[:n_held_out])


def _fit_with_penalty(
    features: Array,
    labels: Array,
    held_out: BoolArray,
    n_classes: int,
    classifier: ClassifierConfig,
    seeds: tuple[int, ...],
) -> BatchedClassifiers:
    """One penalty; the held-out examples choose the layer and stop the training of probes that are not linear."""
    return fit_classifiers(
        features,
        np.where(held_out, UNUSED_LABEL, labels),
        n_classes,
        classifier,
        validation_labels=np.where(held_out, labels, UNUSED_LABEL),
        seeds=seeds,
    )


def _as_layers(states: Array) -> Array:
    """(layer, example, width) from (example, layer, width), or from the (example, width) of one layer."""
    if states.ndim > 3:
        raise ValueError(f"Found array with dim {states.ndim}, expected (example, layer, width) or (example, width)")
    return states[None] if states.ndim == 2 else states.transpose(1, 0, 2)
