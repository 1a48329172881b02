"""Recording in memory: exact shapes, the same numbers in any batch and order, reduced sites equal to naive ones."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.recording.material import CLOSE, assert_same_recording, mixed, pairs, tiny

from bertology.analyses.attention.entropy import ENTROPY
from bertology.analyses.attention.targets import MEASURES, TARGETS
from bertology.corpus.corpus import Corpus
from bertology.encoder.attend import LayerActivations
from bertology.encoder.encoder import Encoder, Output
from bertology.encoder.load import load
from bertology.encoder.pieces import Pieces, Special
from bertology.errors import Refusal
from bertology.recording.frame import Frame
from bertology.recording.objectives import objective_for
from bertology.recording.recorder import Policy, record
from bertology.recording.sites import ReducedSite

CORPUS = Corpus((*mixed(24), *pairs(9)), name="sentences and pairs")
SITES = ["attention", "hidden", "query", "key", "value", "context", "logits.mlm", "logits.nsp", TARGETS, ENTROPY]
Floats = NDArray[np.float64]
Chosen = Callable[[int, int], bool]


def test_arrays_have_exactly_the_shape_of_their_entry() -> None:
    encoder = tiny()
    recording = record(encoder, CORPUS, SITES, policy=Policy(batch_pieces=100))
    layers, heads, width = encoder.layers, encoder.heads, encoder.width
    vocabulary = recording["logits.mlm"][0].shape[-1]
    for index, entry in enumerate(recording.entries):
        n = len(entry.pieces)
        assert recording["attention"][index].shape == (layers, heads, n, n)
        assert recording["hidden"][index].shape == (layers + 1, n, width)
        for site in ("query", "key", "value", "context"):
            assert recording[site][index].shape == (layers, heads, n, width // heads)
        assert recording["logits.mlm"][index].shape == (n, vocabulary)
        assert recording["logits.nsp"][index].shape == (2,)
        assert recording[TARGETS][index].shape == (layers, heads, len(MEASURES))
        np.testing.assert_allclose(recording["attention"][index].sum(-1), 1, atol=CLOSE)


@pytest.mark.parametrize("batch_pieces", [1, 60, 5000])
def test_batch_size_changes_nothing(batch_pieces: int) -> None:
    usual = record(tiny(), CORPUS, SITES)
    other = record(tiny(), CORPUS, SITES, policy=Policy(batch_pieces=batch_pieces))
    assert_same_recording(usual, other, tolerance=CLOSE)


def test_order_of_sentences_changes_nothing() -> None:
    forward = record(tiny(), CORPUS, SITES)
    backward = record(tiny(), Corpus(CORPUS.items[::-1]), SITES)
    for site in forward.sites:
        for a, b in zip(forward[site], list(backward[site])[::-1], strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=CLOSE)


def test_hidden_states_and_maps_are_those_of_the_model_alone() -> None:
    encoder = tiny()
    recording = record(encoder, CORPUS, ["attention", "hidden"])
    for index in (0, 7, 30):
        entry = recording.entries[index]
        seen: list[LayerActivations] = []
        with torch.inference_mode():
            output = encoder.run(Frame([entry]).batch, on_layer=seen.append, hidden=True)
        maps = torch.cat([layer.attention for layer in seen]).numpy()
        np.testing.assert_allclose(recording["attention"][index], maps, atol=CLOSE)
        np.testing.assert_allclose(recording["hidden"][index], torch.cat(output.hidden).numpy(), atol=CLOSE)


def test_reduced_sites_equal_naive_statistics_of_the_raw_maps() -> None:
    recording = record(tiny(), CORPUS, ["attention", TARGETS, ENTROPY], policy=Policy(batch_pieces=150))
    for index, entry in enumerate(recording.entries):
        maps = np.asarray(recording["attention"][index], np.float64)
        naive = [[_naive_targets(head, entry.pieces) for head in layer] for layer in maps]
        np.testing.assert_allclose(recording[TARGETS][index], naive, atol=CLOSE)
        entropies = [[_naive_entropies(head, entry.pieces) for head in layer] for layer in maps]
        np.testing.assert_allclose(recording[ENTROPY][index], entropies, atol=CLOSE)


def _naive_entropies(weights: Floats, pieces: Pieces) -> list[float]:
    def entropy(row: Floats) -> float:
        row = row[row > 0] / row.sum()
        return float(-(row * np.log(row)).sum())

    ordinary = np.flatnonzero(pieces.special == Special.NONE)
    first = np.flatnonzero(pieces.special == Special.CLS)
    return [
        float(np.mean([entropy(row) for row in weights])),
        float(np.mean([entropy(weights[i]) for i in first])),
        float(np.mean([entropy(weights[i][ordinary]) for i in ordinary])),
    ]


def _naive_targets(weights: Floats, pieces: Pieces) -> list[float]:
    n = len(pieces)
    kinds: list[int] = pieces.special.tolist()
    punctuation = [
        kind == Special.NONE and all(unicodedata.category(c)[0] == "P" for c in token.strip("#"))
        for token, kind in zip(pieces.tokens, kinds, strict=True)
    ]
    tests: dict[str, Chosen] = {
        "to [CLS]": lambda i, j: kinds[j] == Special.CLS,
        "to [SEP]": lambda i, j: kinds[j] == Special.SEP,
        "to punctuation": lambda i, j: punctuation[j],
        "to itself": lambda i, j: i == j,
        "to previous": lambda i, j: j == i - 1,
        "to next": lambda i, j: j == i + 1,
        "to same word": lambda i, j: i != j and pieces.word[i] == pieces.word[j] >= 0,
    }

    def mean(rows: list[int], chosen: Chosen) -> float:
        sums = [sum(weights[i, j] for j in range(n) if chosen(i, j)) for i in rows]
        return float(np.mean(sums)) if rows else np.nan

    everywhere = list(range(n))
    found = {name: mean(everywhere, chosen) for name, chosen in tests.items()}
    found["to other"] = mean(everywhere, lambda i, j: not any(test(i, j) for test in tests.values()))
    is_sep = tests["to [SEP]"]
    found["[SEP] to [SEP]"] = mean([i for i in everywhere if kinds[i] == Special.SEP], is_sep)
    found["other to [SEP]"] = mean([i for i in everywhere if kinds[i] != Special.SEP], is_sep)
    for name, step in (("to previous, ordinary", -1), ("to next, ordinary", 1)):
        rows = [
            i for i in everywhere if kinds[i] == Special.NONE and 0 <= i + step < n and kinds[i + step] == Special.NONE
        ]
        found[name] = mean(rows, tests["to previous" if step < 0 else "to next"])
    return [found[name] for name in MEASURES]


def test_reductions_of_a_recording_equal_those_of_the_pass() -> None:
    recorded = record(tiny(), CORPUS, [TARGETS, ENTROPY])
    derived = record(tiny(), CORPUS, ["attention"]).with_derived([TARGETS, ENTROPY])
    for site in (TARGETS, ENTROPY):
        np.testing.assert_allclose(recorded.stacked(site), derived.stacked(site), atol=CLOSE)


def _to_words(layer: LayerActivations, frame: Frame, prepared: None) -> torch.Tensor:
    widest = max(entry.pieces.words for entry in frame.entries)
    belongs = (frame.word[:, :, None] == torch.arange(widest)).float()
    return layer.attention.mean(2, keepdim=True).matmul(belongs[:, None]).squeeze(2)


def test_a_reduction_over_words_is_cut_to_the_words_of_each_entry() -> None:
    site = ReducedSite("test.words", ("to_word",), "mean attention to each word", _to_words)
    together = record(tiny(), CORPUS, [site])
    alone = record(tiny(), CORPUS, [site], policy=Policy(batch_pieces=1))
    for index, entry in enumerate(together.entries):
        assert together[site][index].shape == (2, 4, entry.pieces.words)
        np.testing.assert_allclose(together[site][index][..., 0] >= 0, True)
    assert_same_recording(together, alone, tolerance=1.0)  # shapes; means over padded rows differ on purpose


@pytest.mark.parametrize("objective", ["mlm", "top"])
def test_gradients_do_not_depend_on_batch_mates(objective: str) -> None:
    policy = Policy(objective=objective, batch_pieces=2000)
    together = record(tiny(), CORPUS, ["attention_gradient"], policy=policy)
    alone = record(tiny(), CORPUS, ["attention_gradient"], policy=Policy(objective=objective, batch_pieces=1))
    largest = max(float(np.abs(array).max()) for array in together["attention_gradient"])
    assert largest > CLOSE
    assert_same_recording(together, alone, tolerance=largest / 1000)


def test_the_seed_of_the_masked_objective_counts() -> None:
    first, second = (record(tiny(), CORPUS, ["attention_gradient"], policy=Policy(seed=seed)) for seed in (0, 1))
    assert any(
        np.abs(a - b).max() > CLOSE
        for a, b in zip(first["attention_gradient"], second["attention_gradient"], strict=True)
    )


def test_a_single_score_is_its_own_objective() -> None:
    """Its log-probability would be 0, and so would be every gradient."""
    regression = cast(Encoder, SimpleNamespace(name="regression", outputs=frozenset({"label"}), mask_id=None))
    frame = Frame(record(tiny(), mixed(2), ["logits.nsp"]).entries)
    _, objective = objective_for(regression, "auto", frame, 0)
    assert objective(Output((), {"label": torch.tensor([[2.0], [0.5]])})).item() == 2.5


def test_gradient_and_map_reach_a_reduction_together() -> None:
    site = ReducedSite(
        "test.slope",
        ("sum",),
        "sum of attention times its gradient",
        lambda layer, frame, prepared: _product(layer)[..., None],
        gradient=True,
    )
    policy = Policy(objective="top")
    raw = record(tiny(), CORPUS, ["attention_gradient", site, "attention"], policy=policy)
    for index in range(len(raw)):
        expected = (raw["attention"][index] * raw["attention_gradient"][index]).sum((-1, -2))
        np.testing.assert_allclose(raw[site][index][..., 0], expected, atol=1e-4)


def _product(layer: LayerActivations) -> torch.Tensor:
    assert layer.gradient is not None
    return (layer.attention * layer.gradient).sum((-1, -2))


def test_half_precision_keeps_raw_sites_in_float16_and_reduced_ones_whole() -> None:
    full = record(tiny(), CORPUS, ["attention", "hidden", TARGETS])
    half = record(tiny(), CORPUS, ["attention", "hidden", TARGETS], policy=Policy(half=True))
    for index in range(len(full)):
        assert half["attention"][index].dtype == half["hidden"][index].dtype == np.float16
        assert half[TARGETS][index].dtype == np.float32
        np.testing.assert_allclose(half["attention"][index], full["attention"][index], atol=2**-11)
        np.testing.assert_array_equal(half[TARGETS][index], full[TARGETS][index])


def test_a_bfloat16_encoder_is_recorded_as_float32() -> None:
    full = record(tiny(), CORPUS, ["attention", "hidden"])
    brief = record(load("tiny", dtype="bfloat16"), CORPUS, ["attention", "hidden", "query", "logits.mlm", TARGETS])
    for index in range(len(full)):
        assert brief["attention"][index].dtype == brief["query"][index].dtype == np.float32
        np.testing.assert_allclose(brief["attention"][index], full["attention"][index], atol=0.02)
        np.testing.assert_allclose(brief["attention"][index].sum(-1), 1, atol=CLOSE)
        assert np.isfinite(brief["hidden"][index]).all()


def test_static_vectors_have_hidden_states_and_nothing_else() -> None:
    encoder = load("random-vectors:8")
    recording = record(encoder, mixed(5), ["hidden"])
    for index, entry in enumerate(recording.entries):
        assert recording["hidden"][index].shape == (1, len(entry.pieces), 8)
    with pytest.raises(Refusal, match="has no attention"):
        record(encoder, mixed(5), ["attention"])


def test_progress_counts_every_piece() -> None:
    calls: list[tuple[int, int]] = []
    recording = record(
        tiny(),
        CORPUS,
        [TARGETS],
        policy=Policy(batch_pieces=80),
        progress=lambda done, total: calls.append((done, total)),
    )
    pieces = sum(len(entry.pieces) for entry in recording.entries)
    assert calls[0] == (0, pieces)
    assert calls[-1] == (pieces, pieces)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def test_sites_that_cannot_be_had_are_refused_with_what_there_is() -> None:
    with pytest.raises(Refusal, match="no label head"):
        record(tiny(), CORPUS, ["logits.label"])
    with pytest.raises(Refusal, match="Did you mean 'attention'"):
        record(tiny(), CORPUS, ["atention"])
    with pytest.raises(Refusal, match=r"has no site 'hidden'; it has attention\.targets"):
        record(tiny(), CORPUS, [TARGETS])["hidden"]


def test_a_name_that_could_not_be_a_folder_is_no_site() -> None:
    with pytest.raises(ValueError, match="letters"):
        ReducedSite("a/b", (), "nothing", _to_words)
