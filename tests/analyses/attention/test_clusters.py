"""Planted layers of like heads are found; heads dealt at random are not; distances agree with scipy row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

import planted
from bertology.analyses.attention.clusters import clusters, divergences
from bertology.corpus.builtin import corpus_named
from bertology.encoder.load import load
from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.recording.recorder import Policy, record
from bertology.recording.recording import Recording
from bertology.results.shapes import Matrix, Scatter, Table

TEXTS = ("a b c .", "d e , f g h", ("i j", "k l m n"), "p q r s t u v !")


def mixed(one: planted.HeadMap, other: planted.HeadMap, share: float) -> planted.HeadMap:
    return lambda entry: share * one(entry) + (1 - share) * other(entry)


def like_layers() -> list[list[planted.HeadMap]]:
    """Three layers, each with a way of its own and a little noise."""
    ways = [planted.looking_at(-1), planted.at_kind(Special.SEP), planted.uniform]
    return [[mixed(way, planted.noise(10 * layer + h), 0.8) for h in range(4)] for layer, way in enumerate(ways)]


def dealt_layers() -> list[list[planted.HeadMap]]:
    """The same heads, one of each way in every layer."""
    heads = like_layers()
    return [[heads[way][layer] for way in range(3)] + [heads[layer][3]] for layer in range(3)]


def recorded(layers: list[list[planted.HeadMap]], **options: Any) -> Recording:
    site = divergences(options.get("root", False), options.get("legacy", False), options.get("special", "keep"))
    return planted.recording_of(planted.corpus_of(*TEXTS), layers).with_derived([site])


def shown(layers: list[list[planted.HeadMap]], **options: Any) -> Any:
    settled = clusters.settled(options)
    return clusters.function(recorded(layers, **options), None, **settled)


def test_layers_of_like_heads_are_found() -> None:
    table = shown(like_layers())
    assert isinstance(table, Table)
    assert table.rows_named == ("layer 1", "layer 2", "layer 3", "all layers")
    assert (table.measures["within"].value < table.measures["between"].value).all()
    assert table.measures["silhouette"].value[3] > 0.5
    assert table.measures["p"].value[3] == pytest.approx(0.001)
    assert table.measures["difference"][3].clearly_above(table.baselines["shuffled layers"]["difference"][3])


def test_heads_dealt_at_random_are_no_layers() -> None:
    table = shown(dealt_layers())
    assert table.measures["p"].value[3] > 0.05
    assert table.measures["silhouette"].value[3] < 0


@pytest.mark.parametrize(
    "options", [{}, {"root": True}, {"special": "drop"}, {"legacy": True}], ids=["plain", "root", "ordinary", "legacy"]
)
def test_every_distance_by_hand(options: dict[str, Any]) -> None:
    layers = [[planted.noise(1), planted.uniform], [planted.noise(2), planted.looking_at(1)]]
    recording = recorded(layers, **options)
    site = divergences(options.get("root", False), options.get("legacy", False), options.get("special", "keep"))
    for entry, found in zip(recording.entries, recording[site], strict=True):
        maps = [head(entry) for layer in layers for head in layer]
        kept = entry.pieces.special == Special.NONE if "special" in options else entry.pieces.special >= 0
        maps = [own[np.ix_(kept, kept)] for own in maps]
        with np.errstate(invalid="ignore"):
            maps = [own / own.sum(1, keepdims=True) for own in maps]
        if "legacy" in options:
            maps = [0.999 * own + 0.001 / kept.sum() for own in maps]
        for one in range(4):
            for other in range(4):
                rows = np.array([jensenshannon(p, q) for p, q in zip(maps[one], maps[other], strict=True)])
                rows = np.where(np.isfinite(maps[one] + maps[other]).all(1), rows, np.nan)
                expected = np.nanmean(rows if "root" in options else rows**2)
                assert found.reshape(4, 4)[one, other] == pytest.approx(
                    expected, abs=2e-3 if "root" in options else 7e-5
                )


def test_the_pass_and_the_recorded_maps_agree() -> None:
    encoder, corpus = load("tiny"), corpus_named("english", limit=6)
    site = divergences()
    whole = record(encoder, corpus, ["attention", site], policy=Policy(batch_pieces=60))
    maps = Recording(whole.encoder, whole.corpus, whole.entries, {"attention": whole["attention"]})
    for inside, after in zip(whole[site], maps.with_derived([site])[site], strict=True):
        assert inside.shape == (encoder.layers, encoder.heads, encoder.layers * encoder.heads)
        np.testing.assert_allclose(inside, after, atol=2e-5)


def test_the_clusters_are_the_planted_ways() -> None:
    table = shown(dealt_layers(), show="clusters", count=3)
    assert isinstance(table, Table)
    assert [table.notes[name] for name in table.rows_named] == [
        "1-1, 1-4, 2-1, 3-1",
        "1-2, 2-2, 2-4, 3-2",
        "1-3, 2-3, 3-3, 3-4",
    ]
    assert (table.measures["within"].value < table.baselines["all heads"]["within"].value).all()
    # Of the 66 pairs of 12 heads 18 are of one layer; here each cluster has one such pair of six.
    np.testing.assert_allclose(table.baselines["by chance"]["of one layer"].value, 18 / 66)
    np.testing.assert_allclose(table.measures["of one layer"].value, 1 / 6)


def test_the_map_has_like_heads_side_by_side() -> None:
    scatter = shown(like_layers(), show="map")
    assert isinstance(scatter, Scatter)
    places = scatter.points.reshape(3, 4, 2)
    centres = places.mean(1)
    spread = np.linalg.norm(places - centres[:, None], axis=-1).max()
    assert spread < min(np.linalg.norm(centres[a] - centres[b]) for a in range(3) for b in range(a))


def test_the_matrix_names_heads() -> None:
    matrix = shown(like_layers(), show="heads")
    assert isinstance(matrix, Matrix)
    assert matrix.rows_named[4] == "2-1"
    np.testing.assert_allclose(np.diag(matrix.measures["distance"].value), 0, atol=1e-6)
    assert matrix.units["distance"] == "nats, 0 to ln 2"
    assert shown(like_layers(), show="heads", root=True).units["distance"] == "root nats, 0 to 0.833"


def test_the_distances_of_random_weights_stand_beside() -> None:
    layers, fresh = like_layers(), dealt_layers()
    settled = clusters.settled({"show": "heads"})
    matrix = clusters.function(recorded(layers), recorded(fresh), **settled)
    assert isinstance(matrix, Matrix)
    alone = shown(fresh, show="heads").measures["distance"]
    assert matrix.baselines["random weights"]["distance"] == alone


def test_legacy_weighs_tokens_alike() -> None:
    layers = like_layers()
    recording = recorded(layers, legacy=True)
    lengths = np.array([len(entry.pieces) for entry in recording.entries])
    site = divergences(legacy=True)
    expected = np.average(np.stack(recording[site]).reshape(-1, 12, 12), axis=0, weights=lengths)
    same = np.repeat(np.arange(3), 4)[:, None] == np.repeat(np.arange(3), 4)
    found = shown(layers, legacy=True).measures["between"].value[3]
    assert found == pytest.approx(expected[~same].mean())
    matrix = shown(layers, legacy=True, show="heads")
    np.testing.assert_allclose(matrix.measures["distance"].value, expected, atol=1e-6)


def test_an_input_without_ordinary_pieces_says_nothing_without_special_tokens() -> None:
    layers = like_layers()
    site = divergences(special="drop")
    corpus = planted.corpus_of(*TEXTS, "")
    recording = planted.recording_of(corpus, layers).with_derived([site])
    assert np.isnan(recording[site][-1]).all()
    table = clusters.function(recording, None, **clusters.settled({"special": "drop"}))
    assert isinstance(table, Table)
    for name, estimates in shown(layers, special="drop").measures.items():
        np.testing.assert_allclose(table.measures[name].value, estimates.value, atol=1e-6, err_msg=name)


def test_one_layer_is_refused() -> None:
    with pytest.raises(Refusal, match="two layers"):
        shown([[planted.uniform, planted.noise(1)]])
