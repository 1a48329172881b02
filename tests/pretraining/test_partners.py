"""Partners on a tiny random model: examples, loop, measures, storage, each in seconds."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pretraining.partners import data, examples, loop, measure, report, similarity, store, task
from safetensors.torch import load_file

import models
from bertology.corpus.bio import encode
from bertology.corpus.corpus import Item
from bertology.corpus.sentence import Span, from_text
from bertology.encoder.difference import load_difference
from bertology.encoder.huggingface import load_directory
from shared_data import shared

LABELS = ("bad", "good")
NAMES = ("O", "B-PER", "I-PER")
WORDS = ["the", "keys", "to", "table", "we", "walked", "along", "river", "and", "saw", "lights", "of", "small", "town"]
RECIPE = loop.Recipe(epochs=4, size=8, rate=3e-3, longest=32, half=False)


@pytest.fixture
def base() -> Path:
    return models.directory("bert", "ForPreTraining")


def _classified(count: int) -> list[Item]:
    """Good where a text speaks of a river."""
    draw = random.Random(0)
    items: list[Item] = []
    for number in range(count):
        words = draw.choices([word for word in WORDS if word != "river"], k=draw.randint(2, 9))
        if number % 2:
            words[draw.randrange(len(words))] = "river"
        items.append(Item((from_text(" ".join(words)),), label=LABELS[number % 2]))
    return items


def _named(words: str, *spans: Span) -> Item:
    sentence = from_text(words)
    return Item((replace(sentence, entities=spans, tags=encode(spans, len(sentence))),))


def _task(base: Path, *, tags: bool = False) -> task.Task:
    tokenise = load_directory(base).tokenise
    if tags:
        items = [_named("we saw the small town", Span(4, 5, "PER")), _named("the lights")] * 10
        found, _ = examples.tagged(items, tokenise, NAMES, longest=32)
        return task.Task("ner", data.Material(NAMES, items, items, {"own": items}), found, found, {"own": found}, {})
    items = _classified(96)
    found, _ = examples.classified(items, tokenise, LABELS, longest=32)
    material = data.Material(LABELS, items[:64], items[64:80], {"own": items[80:]})
    return task.Task("sentiment", material, found[:64], found[64:80], {"own": found[80:]}, {})


def test_a_long_text_keeps_its_end_and_a_long_pair_is_left_out(base: Path) -> None:
    tokenise = load_directory(base).tokenise
    text = Item((from_text("the keys to the table are on the small cabinet"),), label="good")
    pair = Item((text.parts[0], text.parts[0]), "pair", "bad")
    found, cut = examples.classified([text, pair], tokenise, LABELS, longest=6)
    whole = examples.classified([text], tokenise, LABELS, longest=60)[0][0]
    assert cut == 2
    assert [example.ids for example in found] == [(whole.ids[0], *whole.ids[-5:])]
    assert found[0].labels == (1,)
    every, _ = examples.classified([text], tokenise, LABELS, longest=6, stretches=9)
    assert [piece for example in reversed(every) for piece in example.ids[1:-1]] == list(whole.ids[1:-1])
    assert max(map(len, every)) == 6


def test_a_tag_goes_to_the_first_piece_and_an_unknown_one_to_none(base: Path) -> None:
    tokenise = load_directory(base).tokenise
    item = _named("unbelievable story", Span(0, 1, "PER"), Span(1, 2, "?"))
    (found,), cut = examples.tagged([item], tokenise, NAMES, longest=60)
    assert cut == 0
    assert found.words[0] == 1
    assert found.labels[1] == NAMES.index("B-PER")
    assert {label for place, label in enumerate(found.labels) if place != 1} == {examples.UNLABELLED}
    assert examples.tagged([item], tokenise, NAMES, longest=4) == ([], 1)


@pytest.mark.parametrize("order", [None, 0, 1])
def test_every_example_is_in_one_batch_with_its_labels(base: Path, order: int | None) -> None:
    some = _task(base).train
    seen = list(examples.batches(some, 7, order=order))
    assert sorted(place for batch in seen for place in batch.places) == list(range(len(some)))
    for batch in seen:
        for row, place in enumerate(batch.places):
            length = int(batch.shown.mask[row].sum())
            assert tuple(batch.shown.ids[row, :length].tolist()) == some[place].ids
            assert tuple(batch.labels[row].tolist()) == some[place].labels
    again = [batch.places for batch in examples.batches(some, 7, order=order)]
    assert again == [batch.places for batch in seen]
    if order is not None:
        assert again != [batch.places for batch in examples.batches(some, 7, order=order + 1)]


def test_the_rate_rises_and_falls() -> None:
    rates = [loop.rate_at(RECIPE, step, 20) for step in range(20)]
    assert rates[0] == pytest.approx(RECIPE.rate / 2)
    assert max(rates) == rates[1] == pytest.approx(RECIPE.rate)
    assert rates[1:] == sorted(rates[1:], reverse=True)
    assert 0 < rates[-1] < RECIPE.rate / 10


def test_training_learns_and_leaves_the_embeddings(base: Path, tmp_path: Path) -> None:
    made = _task(base)
    model = task.start(made, base, seed=0)
    progress = loop.train(model, made.train, made.score(made.stop), replace(RECIPE, epochs=20, patience=20), tmp_path)
    assert progress.best >= 0.9
    assert made.score(made.stop)(model) == progress.best
    name = "bert.embeddings.word_embeddings.weight"
    old = load_file(base / "model.safetensors")
    torch.testing.assert_close(model.state_dict()[name], old[name], rtol=0, atol=0)
    assert not torch.equal(
        model.state_dict()["bert.encoder.layer.0.attention.self.query.weight"],
        old["bert.encoder.layer.0.attention.self.query.weight"],
    )


def test_a_stopped_run_goes_on_to_the_same_weights(base: Path, tmp_path: Path) -> None:
    made = _task(base)
    score = made.score(made.stop)
    whole = task.start(made, base, seed=1)
    loop.train(whole, made.train, score, RECIPE, tmp_path / "whole")
    stopped = task.start(made, base, seed=1)
    calls = 0

    def failing(model: Any) -> float:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return score(model)

    with pytest.raises(KeyboardInterrupt):
        loop.train(stopped, made.train, failing, RECIPE, tmp_path / "stopped")
    resumed = task.start(made, base, seed=1)
    loop.train(resumed, made.train, score, RECIPE, tmp_path / "stopped")
    for name, weights in whole.state_dict().items():
        torch.testing.assert_close(resumed.state_dict()[name], weights, rtol=0, atol=0)
    with pytest.raises(ValueError, match="another recipe"):
        loop.train(resumed, made.train, score, replace(RECIPE, rate=1e-5), tmp_path / "stopped")


def test_training_stops_when_nothing_improves_and_goes_back_to_the_best(base: Path, tmp_path: Path) -> None:
    made = _task(base)
    model = task.start(made, base, seed=0)
    values = iter([0.5, 0.7, 0.6, 0.7, 0.9, 0.9])
    states: list[Any] = []

    def score(current: Any) -> float:
        states.append({name: weights.clone() for name, weights in current.state_dict().items()})
        return next(values)

    progress = loop.train(model, made.train[:8], score, replace(RECIPE, epochs=6), tmp_path)
    assert (progress.epoch, progress.best_epoch, progress.best) == (4, 2, 0.7)
    for name, weights in model.state_dict().items():
        torch.testing.assert_close(weights, states[1][name], rtol=0, atol=0)


def test_fresh_weights_learn_their_embeddings(base: Path) -> None:
    model: Any = task.start(_task(base), base, seed=0, fresh=True)
    assert all(weights.requires_grad for weights in model.parameters())
    assert not torch.equal(
        model.bert.embeddings.word_embeddings.weight,
        load_file(base / "model.safetensors")["bert.embeddings.word_embeddings.weight"],
    )


def test_names_are_right_when_words_and_kind_are() -> None:
    items = [_named("a b c d", Span(0, 2, "PER"), Span(3, 4, "LOC")), _named("e f")]
    tags = [["B-PER", "I-PER", "O", "B-PER"], ["I-PER", "O"]]
    counts = measure.count_names(items, tags)
    np.testing.assert_array_equal(counts.right, [2, 0])
    np.testing.assert_array_equal(counts.of, [4, 1])
    assert counts.value == pytest.approx(2 / 5)
    assert measure.count_names(items, [["O"] * 4, ["O"] * 2]).value == 0


def test_a_figure_holds_its_interval() -> None:
    found = measure.figure(measure.Counts(np.array([1.0, 0.0] * 50), np.ones(100)))
    assert found.n == 100
    assert found.low < found.value == 0.5 < found.high
    assert found.high - found.low == pytest.approx(4 * 0.05, rel=0.2)


def test_baselines_need_no_model() -> None:
    items = _classified(40)
    assert measure.constant(items, data.majority(items)).value == 0.5
    assert measure.by_words(items, items).value > 0.9
    names = [_named("we saw the town", Span(3, 4, "LOC"))]
    assert measure.by_lookup(names, names).value == 1
    assert measure.by_lookup(names, [_named("a city", Span(1, 2, "LOC"))]).value == 0


def test_no_text_is_in_two_parts_of_a_split() -> None:
    items = [replace(item, label=str(n)) for item in _classified(50) for n in range(3)]
    parts = data.split(items, (0.7, 0.1, 0.2))
    assert sum(map(len, parts)) == len(items)
    assert [len(part) / len(items) for part in parts] == pytest.approx([0.7, 0.1, 0.2], abs=0.05)
    texts = [{item.parts[0].text for item in part} for part in parts]
    assert not (texts[0] & texts[1] or texts[0] & texts[2] or texts[1] & texts[2])
    assert data.split(items[::-1], (0.7, 0.1, 0.2))[0][0].parts == parts[0][0].parts


@pytest.mark.parametrize("tags", [False, True])
def test_a_partner_is_stored_loaded_and_reported(base: Path, tmp_path: Path, tags: bool) -> None:
    made = _task(base, tags=tags)
    model: Any = task.start(made, base, seed=0)
    run = tmp_path / "own-0"
    loop.train(model, made.train, made.score(made.stop), replace(RECIPE, epochs=1), run)
    tried = report.choose_rank(made, model, base, ranks=(1, 15))
    assert tried[-1].same_answers >= tried[0].same_answers
    store.store(model, base, tmp_path / "partner", rank=15)
    loaded = load_difference(base, tmp_path / "partner")
    assert loaded.outputs == {"token" if tags else "label"}
    assert loaded.model.config.id2label == dict(enumerate(made.material.labels))
    before, after = (np.concatenate(measure.predict(some, made.stop)) for some in (model, loaded.model))
    np.testing.assert_allclose(after, before, rtol=0, atol=0.2)
    figures = report.report(made, base, tmp_path / "partner", [run], run)
    assert figures["shipped"]["own"]["n"] == len(made.dev["own"])
    assert figures["similarity"][0] == pytest.approx(1)
    assert len(figures["similarity"]) == models.LAYERS + 1


def test_storing_loses_less_the_higher_the_rank(base: Path) -> None:
    old = load_file(base / "model.safetensors")
    name = "bert.pooler.dense.weight"
    new = {name: old[name] + torch.randn(old[name].shape, generator=torch.Generator().manual_seed(0))}
    errors: list[float] = []
    for rank in (2, 8, 15):
        stored = store.difference(new, old, rank=rank)
        assert {tensor.dtype for tensor in stored.values()} == {torch.float16}
        again = old[name] + stored[f"{name}.left"].float() @ stored[f"{name}.right"].float()
        errors.append(float((again - new[name]).norm()))
    assert errors == sorted(errors, reverse=True)
    dense = store.difference(new, old, rank=16)
    torch.testing.assert_close(old[name] + dense[f"{name}.added"].float(), new[name], rtol=1e-3, atol=1e-3)
    assert store.difference(old, old, rank=4) == {}


def test_a_model_is_like_itself_and_unlike_another(base: Path) -> None:
    encoder = load_directory(base)
    items = [_named(text) for text in models.TEXTS]
    np.testing.assert_allclose(similarity.layer_similarity(encoder, encoder, items, words=30), 1)
    other = similarity.layer_similarity(encoder, encoder.randomised(3, keep_embeddings=True), items, words=30)
    assert other[0] == pytest.approx(1)
    assert other[-1] < 0.9


@pytest.mark.slow
def test_the_data_is_read_into_one_scheme() -> None:
    folder = shared("data/ner").parent
    ner = data.ner(folder)
    used = {tag for item in ner.train for tag in item.parts[0].tags or ()}
    assert used == {*data.TAGS, "B-?", "I-?"}
    judged = {tag for items in ner.dev.values() for item in items for tag in item.parts[0].tags or ()}
    assert judged <= set(data.TAGS)
    texts = {item.parts[0].text for item in ner.train}
    assert not [item for item in ner.dev["english"] if item.parts[0].text in texts]
    sentiment = data.sentiment(folder)
    assert {len(items) for items in sentiment.dev.values()} == {200}
    assert {item.label for item in sentiment.train} == {"negative", "positive"}
    pairs = data.pairs(folder)
    assert {item.label for item in pairs.train} == set(data.ENTAILMENT)
    assert set(pairs.dev) == {"snli", "mnli_matched", "mnli_mismatched", "generated"}
