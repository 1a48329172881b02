"""A planted [SEP] no-op has the index 1 and no effect; one that says something has neither."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import models
import planted
import planted_vectors as vectors
from bertology.analyses.attention.sinks import NUMBERS, SINK, SINKS, sink_pieces, sinks
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.measures.attention.dropped_values import drawn_others
from bertology.recording.entry import Entry
from bertology.recording.frame import Frame
from bertology.recording.objectives import masked_positions
from bertology.recording.recorder import record
from bertology.results.shapes import HeadGrid, LayerCurve

CORPUS = planted.corpus_of("The keys to the cabinet are on the table.", "A dog!", ("She walked.", "It rains."))
DROP = "effect of dropping [SEP]"


def found(model: HuggingFaceEncoder, **options: Any) -> LayerCurve | HeadGrid:
    given: dict[str, Any] = {name: option.default for name, option in sinks.options.items()}
    shape = sinks.function(record(model, CORPUS, [SINK]), None, model, **{**given, **options})
    assert isinstance(shape, LayerCurve | HeadGrid)
    return shape


def no_op_model() -> HuggingFaceEncoder:
    """A BERT whose [SEP] has a value vector of zero in the first layer.

    Without positions and types the state of [SEP] there is one vector, which the value projection is made blind to.
    """
    made = models.model("bert", "ForMaskedLM")
    embeddings = made.bert.embeddings
    with torch.no_grad():
        embeddings.position_embeddings.weight.zero_()
        embeddings.token_type_embeddings.weight.zero_()
        sep = embeddings.LayerNorm(embeddings.word_embeddings.weight[models.BERT_SPECIAL.id("[SEP]")])
        value = made.bert.encoder.layer[0].attention.self.value
        value.weight -= torch.outer(value.weight @ sep, sep) / sep.square().sum()
        value.bias.zero_()
    return models.wrapped(made, "bert")


@pytest.mark.parametrize("effect", ["hidden", "loss", "logits"])
def test_a_planted_no_op_has_index_one_and_no_effect(effect: str) -> None:
    curve = found(no_op_model(), effect=effect)
    np.testing.assert_allclose(curve.measures["no-op index"].value[0], 1, atol=1e-5)
    np.testing.assert_allclose(curve.measures[DROP].value[0], 0, atol=1e-5)
    assert abs(float(curve.baselines["ordinary piece"][DROP].value[0])) > 1e-4
    assert curve.measures["attention"].value[0] > 0.05


def test_an_informative_sep_is_no_no_op() -> None:
    curve = found(models.encoder("bert", "ForMaskedLM"))
    assert (curve.measures["no-op index"].value < 0.6).all()
    assert (curve.measures[DROP].value > 1e-2).all()


def values_without(model: HuggingFaceEncoder, layer: int, batch: Any, pieces: Tensor) -> Any:
    """What a second, unwatched model returns when its value projection gives zero for these pieces."""
    reference = models.reference(model)

    def silence(_module: Any, _given: Any, returned: Tensor) -> Tensor:
        return returned.masked_fill(pieces.unsqueeze(-1), 0)

    if layer >= 0:
        reference.bert.encoder.layer[layer].attention.self.value.register_forward_hook(silence)
    with torch.inference_mode():
        return reference(batch.ids, attention_mask=batch.mask, token_type_ids=batch.types, output_hidden_states=True)


@pytest.mark.parametrize("effect", ["hidden", "loss", "logits"])
def test_effects_are_those_of_a_model_silenced_by_hand(effect: str) -> None:
    model = models.encoder("bert", "ForMaskedLM")
    curve = found(model, effect=effect)
    for layer in range(model.layers):
        changes: list[tuple[float, ...]] = []
        for entry in record(model, CORPUS, []).entries:
            frame = Frame([entry])
            masked = masked_positions(frame, 0) if effect == "loss" else torch.zeros_like(frame.real)
            sink = sink_pieces(frame, "sep")
            (others,) = drawn_others(frame, sink, masked, 0)
            dropped = sink, torch.from_numpy(others)[None]
            changes.append(tuple(changed_by_hand(model, layer, frame, masked, pieces, effect) for pieces in dropped))
        sinks_dropped, others_dropped = np.nanmean(np.array(changes), axis=0)
        np.testing.assert_allclose(curve.measures[DROP].value[layer], sinks_dropped, atol=1e-5, rtol=1e-4)
        beside = curve.baselines["ordinary piece"][DROP].value[layer]
        np.testing.assert_allclose(beside, others_dropped, atol=1e-5, rtol=1e-4)


def changed_by_hand(
    model: HuggingFaceEncoder, layer: int, frame: Frame, masked: Tensor, dropped: Tensor, effect: str
) -> float:
    """The effect on one sentence, seen on ordinary pieces that were not dropped; NaN where nothing was."""
    batch = models.batch([frame.entries[0].pieces])
    batch = type(batch)(batch.ids.masked_fill(masked, model.mask_id or 0), batch.types, batch.mask)
    before, after = (values_without(model, at, batch, dropped) for at in (-1, layer))
    old, new = before.logits.log_softmax(-1), after.logits.log_softmax(-1)
    counted = frame.ordinary & ~dropped
    if effect == "hidden":
        states = before.hidden_states[-1], after.hidden_states[-1]
        change = ((states[1] - states[0]).norm(dim=-1) / states[0].norm(dim=-1))[counted].mean()
    elif effect == "loss":
        right = frame.batch.ids[masked].unsqueeze(-1)
        change = (old[masked].gather(1, right) - new[masked].gather(1, right)).mean()
    else:
        change = torch.nn.functional.kl_div(new, old, log_target=True, reduction="none").sum(-1)[counted].mean()
    return float(change) if dropped.any() else float("nan")


def test_dropping_onwards_at_the_last_layer_is_dropping_alone() -> None:
    model = models.encoder("bert", "ForMaskedLM")
    alone, onwards = (found(model, reach=reach).measures[DROP].value for reach in ("alone", "onwards"))
    np.testing.assert_allclose(alone[-1], onwards[-1], rtol=1e-6)
    assert abs(alone[0] - onwards[0]) > 1e-3


def test_random_weights_stand_beside() -> None:
    model = models.encoder("bert", "ForMaskedLM")
    fresh = model.randomised(seed=0)
    options = sinks.settled({})
    shown = sinks.function(record(model, CORPUS, [SINK]), record(fresh, CORPUS, [SINK]), model, **options)
    assert isinstance(shown, LayerCurve)
    for name, estimates in found(fresh).measures.items():
        assert shown.baselines["random weights"][name] == estimates


@pytest.mark.parametrize("threshold", [0.05, 0.15, 0.3])
def test_the_sink_rate_is_the_share_of_heads_above_the_threshold(threshold: float) -> None:
    model = models.encoder("bert", "ForMaskedLM")
    peaks = record(model, CORPUS, [SINK]).stacked(SINK)[:, :, :, list(SINKS).index("sep"), 1]
    curve, grid = (found(model, threshold=threshold, by=by) for by in ("layer", "head"))
    np.testing.assert_allclose(curve.measures["sink rate"].value, (peaks > threshold).mean((0, 2)))
    np.testing.assert_allclose(grid.measures["sink rate"].value, (peaks > threshold).mean(0))
    uniform = np.array([1 / len(entry.pieces) for entry in record(model, CORPUS, []).entries])
    expected = (uniform > threshold).mean()
    np.testing.assert_allclose(curve.baselines["uniform attention"]["sink rate"].value, expected)


def test_the_ordinary_pieces_dropped_beside_are_others_and_not_masked() -> None:
    shown = vectors.frame()
    sink = sink_pieces(shown, "sep") | (torch.arange(shown.width) == 1) & shown.real
    masked = (torch.arange(shown.width) == 2) & shown.ordinary
    for seed in range(5):
        for row, flags in enumerate(drawn_others(shown, sink, masked, seed)):
            length = len(shown.entries[row].pieces)
            usable = (shown.ordinary & ~sink & ~masked)[row, :length].numpy()
            assert not (flags & ~usable).any()
            assert flags.sum() == min(int(sink[row].sum()), usable.sum())


def test_every_head_has_its_own_effect() -> None:
    model = models.encoder("bert", "ForMaskedLM")
    grid = found(model, by="head", effect="logits")
    assert isinstance(grid, HeadGrid)
    effects = grid.measures[DROP].value
    assert effects.shape == (model.layers, model.heads) and len(np.unique(effects.round(6))) == effects.size


def test_indices_and_rates_are_those_of_plain_loops() -> None:
    shown = vectors.frame()
    layer = vectors.layer(shown, [planted.noise(1), _mostly_sep], [vectors.values(1), vectors.values(2)])
    numbers = SINK.reduce(layer, shown, None).numpy()
    for row, entry in enumerate(shown.entries):
        n = len(entry.pieces)
        pieces = entry.pieces.special == Special.SEP
        for head in range(2):
            alpha = vectors.weights(layer, row, head, n)
            lengths = np.linalg.norm(vectors.transformed(layer, row, head, n), axis=1)
            ordinary = lengths[entry.pieces.special == Special.NONE].mean()
            share = alpha[:, pieces].sum(1).mean()
            expected = [
                share,
                alpha.mean(0)[pieces].max(),
                (alpha * lengths)[:, pieces].sum(1).mean(),
                share * ordinary,
            ]
            expected += [pieces.sum() / n, 1 / n]
            np.testing.assert_allclose(numbers[row, head, list(SINKS).index("sep")], expected, rtol=1e-5)
    assert numbers.shape[2:] == (len(SINKS), len(NUMBERS))


def _mostly_sep(entry: Entry) -> planted.Floats:
    return 0.8 * planted.at_kind(Special.SEP)(entry) + 0.2 * planted.uniform(entry)


def test_a_model_without_the_sink_or_the_head_is_refused() -> None:
    with pytest.raises(Refusal, match=r"No input has \[SEP\]"):
        found(models.encoder("gpt2"))
    with pytest.raises(Refusal, match="no head for --effect loss"):
        found(models.encoder("bert"), effect="loss")
    assert np.isfinite(found(models.encoder("gpt2"), sink="first").measures["no-op index"].value).all()


@pytest.mark.parametrize("name", models.FAMILIES)
def test_it_runs_on_every_family(name: str) -> None:
    sink = "first" if name == "gpt2" else "special"
    curve = found(models.encoder(name), sink=sink)
    assert all(np.isfinite(estimates.value).all() for estimates in curve.measures.values())
