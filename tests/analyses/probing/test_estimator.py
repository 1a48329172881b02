"""The probe as a scikit-learn classifier: its contract, planted layers, groups, and chance on noise."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import SkipTestWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from bertology.analyses.probing.estimator import LayerProbe, held_out_mask

SKIPPED_CHECKS = {"check_array_api_input": "needs SCIPY_ARRAY_API in the environment; the probe takes NumPy arrays"}
LAYER = 2
Array = NDArray[Any]


def planted_states(n_sentences: int = 60, n_words: int = 5, *, seed: int = 0) -> tuple[Array, Array, Array]:
    """States whose layer 2 of four encodes one of three labels; all layers encode the sentence."""
    generator = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_sentences), n_words)
    y = np.array(["a", "b", "c"])[generator.integers(3, size=len(groups))]
    x = generator.normal(size=(len(groups), 4, 12)) + generator.normal(size=(n_sentences, 4, 12))[groups]
    x[:, LAYER, :3] += 6 * (y[:, None] == np.array(["a", "b", "c"]))
    return x, y, groups


def test_the_estimator_keeps_the_contract_of_scikit_learn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        checks = check_estimator(LayerProbe(), on_fail=None)
    assert {c["check_name"]: c["exception"] for c in checks if c["status"] == "failed"} == {}
    assert {c["check_name"] for c in checks if c["status"] == "skipped"} == SKIPPED_CHECKS.keys()
    assert len([c for c in checks if c["status"] == "passed"]) > 40


@pytest.mark.parametrize("probe", ["linear", "rank:4", "mlp:10"])
def test_the_layer_that_encodes_the_label_is_chosen(probe: str) -> None:
    x, y, groups = planted_states()
    fitted = LayerProbe(probe=probe).fit(x, y, groups)
    assert fitted.layer_ == LAYER
    assert fitted.layer_scores_[LAYER] > 0.9 and np.delete(fitted.layer_scores_, LAYER).max() < 0.6
    new_x, new_y, _ = planted_states(seed=1)
    assert fitted.score(new_x, new_y) > 0.9
    probabilities = fitted.predict_proba(new_x)
    assert probabilities.shape == (len(new_y), 3)
    np.testing.assert_allclose(probabilities.sum(1), 1)
    assert (fitted.classes_[probabilities.argmax(1)] == fitted.predict(new_x)).all()


def test_noise_gives_chance() -> None:
    x, _, groups = planted_states()
    noise = np.random.default_rng(5).integers(2, size=len(groups))
    scores = cross_val_score(LayerProbe(), x, noise, groups=groups, cv=GroupKFold(5))
    assert abs(scores.mean() - 0.5) < 0.12


def test_one_layer_as_a_matrix_is_the_same_probe() -> None:
    x, y, groups = planted_states()
    stacked = LayerProbe(LAYER).fit(x, y, groups)
    flat = LayerProbe().fit(x[:, LAYER], y, groups)
    last = LayerProbe(LAYER - 4).fit(x, y, groups)
    np.testing.assert_allclose(stacked.predict_proba(x), flat.predict_proba(x[:, LAYER]), atol=1e-6)
    np.testing.assert_allclose(stacked.predict_proba(x), last.predict_proba(x))
    assert (flat.layer_, last.layer_, flat.n_layers_) == (0, LAYER, 1)


def test_a_penalty_gives_the_solution_of_scikit_learn() -> None:
    x, y, _ = planted_states(200)
    x = x + np.random.default_rng(3).normal(size=x.shape) * 3
    penalty, train = 0.05, ~held_out_mask(np.arange(len(y)), 0.15, 0)
    fitted = LayerProbe(LAYER, penalty=penalty).fit(x, y)
    scaled = (x[:, LAYER] - x[:, LAYER].mean(0)) / x[:, LAYER].std(0)
    reference = LogisticRegression(C=1 / (penalty * train.sum()), tol=1e-8, max_iter=1000).fit(scaled[train], y[train])
    np.testing.assert_allclose(fitted.predict_proba(x), reference.predict_proba(scaled), atol=5e-3)


def test_layers_are_searched_pipelines_built_and_probes_cloned() -> None:
    x, y, groups = planted_states()
    search = GridSearchCV(LayerProbe(), {"layer": [0, 1, 2, 3]}, cv=GroupKFold(3)).fit(x, y, groups=groups)
    assert search.best_params_ == {"layer": LAYER} and search.best_score_ > 0.9
    pipeline = make_pipeline(StandardScaler(), LayerProbe(penalty=0.01))
    assert cross_val_score(pipeline, x[:, LAYER], y, groups=groups, cv=GroupKFold(3)).mean() > 0.9
    copy: Any = clone(LayerProbe(3, probe="mlp:5", penalty=0.1, random_state=4))
    assert copy.get_params() == {
        "layer": 3, "probe": "mlp:5", "penalty": 0.1, "validation_fraction": 0.15, "random_state": 4,
    }  # fmt: skip


def test_groups_are_held_out_whole() -> None:
    groups = np.repeat(np.arange(20), 3)
    mask = held_out_mask(groups, 0.15, seed=0)
    by_group = mask.reshape(20, 3)
    assert (by_group.all(1) | ~by_group.any(1)).all() and by_group[:, 0].sum() == 3
    assert (held_out_mask(groups, 0.15, seed=1) != mask).any()


@pytest.mark.parametrize(
    ("settings", "x", "message"),
    [
        ({"layer": 4}, np.zeros((4, 3, 2)), "layer is 4; expected `best` or a number from 0"),
        ({"layer": "last"}, np.zeros((4, 3, 2)), "layer is 'last'"),
        ({"probe": "quadratic"}, np.zeros((4, 2)), "There is no probe called 'quadratic'"),
        ({"probe": "bilinear:4"}, np.zeros((4, 2)), "pairs of spans"),
        ({"penalty": -1.0}, np.zeros((4, 2)), "penalty is -1.0"),
        ({"validation_fraction": 1.5}, np.zeros((4, 2)), "validation_fraction is 1.5"),
        ({}, np.zeros((4, 2, 2, 2)), "Found array with dim 4"),
    ],
)
def test_mistakes_are_value_errors(settings: dict[str, Any], x: Array, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LayerProbe(**settings).fit(x, np.array(["a", "b", "a", "b"]))


def test_states_of_another_model_are_refused() -> None:
    x, y, _ = planted_states()
    fitted = LayerProbe().fit(x, y)
    with pytest.raises(ValueError, match="fitted on 4 layers of width 12"):
        fitted.predict(x[:, :, :5])
    with pytest.raises(ValueError, match="groups has the shape"):
        fitted.fit(x, y, np.zeros(3))
