"""Partners on a tiny random model: examples, loop, measures, storage, each in seconds."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pretraining.partners import (
    baselines,
    data,
    factors,
    loop,
    measure,
    pack,
    report,
    similarity,
    store,
    task,
)
from safetensors.torch import load_file

import tiny_models
from bertology.corpus.bio import encode
from bertology.corpus.corpus import Example
from bertology.corpus.sentence import Span, sentence_from_text
from bertology.encoder.delta_checkpoint import load_delta
from bertology.encoder.huggingface_loading import load_directory
from bertology.estimates import metrics
from bertology.training import encoded_examples as examples
from bertology.training.loop import learning_rate_at, trainable_parameters
from bertology.training.tasks.token_classification import count_correct_spans
from shared_data import shared

LABELS = ("bad", "good")
NAMES = ("O", "B-PER", "I-PER")
WORDS = ["the", "keys", "to", "table", "we", "walked", "along", "river", "and", "saw", "lights", "of", "small", "town"]
LEARNING_RATE = 1e-2
RECIPE = loop.Recipe(epochs=2, batch_size=8, learning_rate=LEARNING_RATE, rank=4)


@pytest.fixture
def base() -> Path:
    return tiny_models.directory("bert", "ForPreTraining")


def _classified(count: int) -> list[Example]:
    """Good where a text speaks of a river."""
    draw = random.Random(0)
    items: list[Example] = []
    for number in range(count):
        words = draw.choices([word for word in WORDS if word != "river"], k=draw.randint(2, 9))
        if number % 2:
            words[draw.randrange(len(words))] = "river"
        items.append(Example((sentence_from_text(" ".join(words)),), label=LABELS[number % 2]))
    return items


def _named(words: str, *spans: Span) -> Example:
    sentence = sentence_from_text(words)
    return Example((replace(sentence, entities=spans, tags=encode(spans, len(sentence))),))


def _pack(base: Path, *, tags: bool = False) -> pack.Pack:
    tokenise = load_directory(base).tokenise
    if tags:
        named = [_named("we saw the small town", Span(4, 5, "PER")), _named("the lights of we", Span(1, 2, "?"))] * 10
        judged = [named[0], _named("the lights")] * 4
        material = data.Material(NAMES, named, named, {"own": judged})
        return pack.packed("ner", material, tokenise, pack.tokeniser_of(base), longest=32)
    items = _classified(96)
    judged = [replace(item, factors={"phenomenon": str(item.label)}) for item in items[80:]]
    material = data.Material(LABELS, items[:64], items[64:80], {"own": judged})
    return pack.packed("sentiment", material, tokenise, pack.tokeniser_of(base), longest=32)


def _score(some: pack.Pack) -> loop.Score:
    return task.score_of(some, some.parts[pack.STOP])


def test_a_long_text_keeps_its_end_and_a_long_pair_is_left_out(base: Path) -> None:
    tokenise = load_directory(base).tokenise
    text = Example((sentence_from_text("the keys to the table are on the small cabinet"),), label="good")
    pair = Example((text.segments[0], text.segments[0]), "pair", "bad")
    found = examples.encode_classification([text, pair], tokenise, LABELS, max_length=6)
    whole = examples.encode_classification([text], tokenise, LABELS, max_length=60).encoded[0]
    assert found.n_truncated == 2
    assert found.examples == [text]
    assert [example.input_ids.tolist() for example in found.encoded] == [[whole.input_ids[0], *whole.input_ids[-5:]]]
    assert found.encoded[0].labels.tolist() == [1]


def test_a_tag_goes_to_the_first_piece_and_an_unknown_one_to_none(base: Path) -> None:
    tokenise = load_directory(base).tokenise
    item = _named("unbelievable story", Span(0, 1, "PER"), Span(1, 2, "?"))
    found = examples.encode_tagging([item], tokenise, NAMES, max_length=60)
    assert found.n_truncated == 0
    assert found.encoded[0].labelled_positions.tolist() == [1]
    assert found.encoded[0].labels[1] == NAMES.index("B-PER")
    none = examples.encode_tagging([item], tokenise, NAMES, max_length=4)
    assert (none.examples, none.n_truncated) == ([], 1)


@pytest.mark.parametrize("order", [None, 0, 1])
def test_every_example_is_in_one_batch_with_its_labels(base: Path, order: int | None) -> None:
    some = _pack(base).parts[pack.TRAIN]
    seen = list(examples.iterate_batches(some, 7, shuffle_seed=order))
    assert sorted(place for batch in seen for place in batch.indices) == list(range(len(some)))
    for batch in seen:
        for row, place in enumerate(batch.indices):
            length = int(batch.inputs.attention_mask[row].sum())
            assert batch.inputs.input_ids[row, :length].tolist() == some[place].input_ids.tolist()
            assert batch.labels[row].tolist() == some[place].labels.tolist()
    again = [batch.indices for batch in examples.iterate_batches(some, 7, shuffle_seed=order)]
    assert again == [batch.indices for batch in seen]
    if order is not None:
        assert again != [batch.indices for batch in examples.iterate_batches(some, 7, shuffle_seed=order + 1)]


def test_the_rate_rises_and_falls() -> None:
    rates = [learning_rate_at(RECIPE, step, 20) for step in range(20)]
    assert rates[0] == pytest.approx(LEARNING_RATE / 2)
    assert max(rates) == rates[1] == pytest.approx(LEARNING_RATE)
    assert rates[1:] == sorted(rates[1:], reverse=True)
    assert 0 < rates[-1] < LEARNING_RATE / 10


def test_a_pack_is_read_as_it_was_written(base: Path, tmp_path: Path) -> None:
    for tags in (False, True):
        made = _pack(base, tags=tags)
        pack.write(made, tmp_path / "pack.npz")
        again = pack.read(tmp_path / "pack.npz", base)
        assert (again.task, again.labels, again.facts) == (made.task, made.labels, made.facts)
        assert list(again.parts) == list(made.parts)
        for name, some in made.parts.items():
            assert [one.labels.tolist() for one in again.parts[name]] == [one.labels.tolist() for one in some]
            assert [one.input_ids.tolist() for one in again.parts[name]] == [one.input_ids.tolist() for one in some]
            types = [one.token_type_ids.tolist() for one in some]
            assert [one.token_type_ids.tolist() for one in again.parts[name]] == types
        assert [one.phenomenon for one in again.dev["own"]] == [one.phenomenon for one in made.dev["own"]]
    pack.write(replace(made, tokeniser="another"), tmp_path / "pack.npz")
    with pytest.raises(ValueError, match="another tokeniser"):
        pack.read(tmp_path / "pack.npz", base)


def test_factors_change_nothing_before_they_are_learnt(base: Path) -> None:
    made = _pack(base)
    model: Any = task.start(made, base, RECIPE)
    old = load_file(base / "model.safetensors")
    names = dict(factors.factors(model))
    layers = {name.partition("layer.")[2].partition(".")[0] for name in names}
    assert {*map(str, range(tiny_models.LAYERS))} <= layers
    assert "bert.pooler.dense.weight" in names
    assert not [name for name in names if "embeddings" in name or "classifier" in name]
    for name in names:
        torch.testing.assert_close(model.get_submodule(name.removesuffix(".weight")).weight, old[name].float())


def test_training_learns_factors_and_leaves_the_rest_of_the_base(base: Path, tmp_path: Path) -> None:
    made = _pack(base)
    model: Any = task.start(made, base, RECIPE)
    recipe = replace(RECIPE, epochs=40, learning_rate=5e-3)
    progress = loop.train(model, made.parts[pack.TRAIN], _score(made), recipe, tmp_path)
    assert progress.best_score >= 0.9
    assert _score(made)(model) == progress.best_score
    old = load_file(base / "model.safetensors")
    for name, low in factors.factors(model):
        held = model.get_submodule(name.removesuffix(".weight"))
        torch.testing.assert_close(held.parametrizations.weight.original, old[name].float(), rtol=0, atol=0)
        change = held.weight.detach() - old[name].float()
        assert 0 < int(torch.linalg.matrix_rank(change, atol=1e-4)) <= RECIPE.rank
        assert low.left.shape[1] == RECIPE.rank
    name = "bert.embeddings.word_embeddings.weight"
    torch.testing.assert_close(model.state_dict()[name], old[name].float(), rtol=0, atol=0)
    name = "bert.encoder.layer.0.output.LayerNorm.bias"
    assert not torch.equal(model.state_dict()[name], old[name].float())


def test_the_same_seed_gives_the_same_weights(base: Path, tmp_path: Path) -> None:
    made = _pack(base)
    found: list[dict[str, torch.Tensor]] = []
    for seed in (1, 1, 2):
        recipe = replace(RECIPE, seed=seed, epochs=1)
        model = task.start(made, base, recipe)
        loop.train(model, made.parts[pack.TRAIN], _score(made), recipe, tmp_path)
        found.append({name: weights.detach() for name, weights in trainable_parameters(model).items()})
    name = "classifier.weight"
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=0)
    assert not torch.equal(found[0][name], found[2][name])


def test_training_goes_back_to_the_best_epoch(base: Path, tmp_path: Path) -> None:
    made = _pack(base)
    recipe = replace(RECIPE, epochs=3)
    model = task.start(made, base, recipe)
    values = iter([0.5, 0.7, 0.6])
    states: list[dict[str, torch.Tensor]] = []

    def score(current: Any) -> float:
        states.append({name: weights.detach().clone() for name, weights in trainable_parameters(current).items()})
        return next(values)

    progress = loop.train(model, made.parts[pack.TRAIN][:8], score, recipe, tmp_path)
    assert (progress.best_epoch, progress.best_score, len(progress.epochs)) == (2, 0.7, 3)
    again = task.trained(made, base, tmp_path)
    for one in (model, again):
        torch.testing.assert_close(
            {n: w.detach() for n, w in trainable_parameters(one).items()}, states[1], rtol=0, atol=0
        )


def test_fresh_weights_are_learnt_whole(base: Path) -> None:
    recipe = task.recipe_of("sentiment", 0, fresh=True)
    model: Any = task.start(_pack(base), base, recipe)
    assert recipe.learning_rate == task.FRESH_RATE
    assert all(weights.requires_grad for weights in model.parameters())
    assert not dict(factors.factors(model))
    assert not torch.equal(
        model.bert.embeddings.word_embeddings.weight,
        load_file(base / "model.safetensors")["bert.embeddings.word_embeddings.weight"],
    )


def test_names_are_right_when_words_and_kind_are() -> None:
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "O"]]
    tags = [["B-PER", "I-PER", "O", "B-PER"], ["I-PER", "O"]]
    counts = count_correct_spans(gold, tags)
    np.testing.assert_array_equal(counts.correct, [2, 0])
    np.testing.assert_array_equal(counts.total, [4, 1])
    assert counts.score == pytest.approx(2 / 5)
    assert count_correct_spans(gold, [["O"] * 4, ["O"] * 2]).score == 0


def test_a_figure_holds_its_interval() -> None:
    found = metrics.bootstrap_score(metrics.Counts(np.array([1.0, 0.0] * 50), np.ones(100)))
    assert found.n == 100
    assert found.low < found.value == 0.5 < found.high
    assert found.high - found.low == pytest.approx(4 * 0.05, rel=0.2)


def test_baselines_need_no_model(base: Path) -> None:
    found = _pack(base).facts["baselines"]["own"]
    assert found["commonest class"]["value"] == 0.5
    assert found["words"]["value"] > 0.9
    assert found["pieces seen"]["value"] > 0.6
    assert _pack(base, tags=True).facts["baselines"]["own"]["no names"]["value"] == 0
    names = [_named("we saw the town", Span(3, 4, "LOC"))]
    assert baselines.by_lookup(names, names).score == 1
    assert baselines.by_lookup(names, [_named("a city", Span(1, 2, "LOC"))]).score == 0


def test_a_pair_is_guessed_by_its_second_text_alone(base: Path) -> None:
    item = Example((sentence_from_text("the keys"), sentence_from_text("we walked")), "pair", "bad")
    seen = examples.encode_classification([item], load_directory(base).tokenise, LABELS, max_length=32)
    alone = examples.encode_classification(
        [Example(item.segments[1:], label="bad")], load_directory(base).tokenise, LABELS, max_length=32
    )
    assert baselines.last_texts(seen) == ["we walked"]
    assert baselines.last_pieces(seen) == [" ".join(map(str, alone.encoded[0].input_ids[1:]))]


def test_no_text_is_in_two_parts_of_a_split() -> None:
    items = [replace(item, label=str(n)) for item in _classified(50) for n in range(3)]
    parts = data.split(items, (90, 15, 30))
    assert [len(part) for part in parts] == pytest.approx([90, 15, 30], abs=3)
    texts = [{item.segments[0].text for item in part} for part in parts]
    assert not (texts[0] & texts[1] or texts[0] & texts[2] or texts[1] & texts[2])
    assert data.split(items[::-1], (90, 15, 30))[0][0].segments == parts[0][0].segments


def test_halves_of_the_reviews_share_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "QUARTER", 2)
    texts = ["a", "b", "c<br />d", "b", "e", "f", "g", "e"]
    rows: list[dict[str, str | int]] = [{"t": text, "s": int(place >= 4)} for place, text in enumerate(texts)]
    halves = data.reviews(rows)
    assert [(item.segments[0].text, item.label) for item in halves["test"]] == [
        ("a", "negative"), ("b", "negative"), ("e", "positive"), ("f", "positive")
    ]  # fmt: skip
    assert [item.segments[0].text for item in halves["train"]] == ["c d", "g"]
    with pytest.raises(ValueError, match="another order"):
        data.reviews(rows[::-1])


@pytest.mark.parametrize("tags", [False, True])
def test_what_is_stored_is_what_was_trained(base: Path, tmp_path: Path, tags: bool) -> None:
    made = _pack(base, tags=tags)
    model: Any = task.start(made, base, RECIPE)
    run = tmp_path / "own-0"
    loop.train(model, made.parts[pack.TRAIN], _score(made), RECIPE, run)
    store.store(model, base, tmp_path / "partner")
    loaded = load_delta(base, tmp_path / "partner")
    assert loaded.task_heads == {"token" if tags else "label"}
    assert loaded.model.config.id2label == dict(enumerate(made.labels))
    before, after = (np.concatenate(measure.predict(some, made.dev["own"])) for some in (model, loaded.model))
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-2)
    figures = report.report(made, base, tmp_path / "partner", [run], run, device="cpu")
    assert figures["shipped"]["own"]["n"] == len(made.dev["own"])
    assert set(figures["shipped"]) == ({"own"} if tags else {"own", "own: bad", "own: good"})
    assert figures["kept"]["same_answers"] >= 0.995
    assert figures["kept"]["rank"] == RECIPE.rank
    assert figures["similarity"][0] == pytest.approx(1)
    assert len(figures["similarity"]) == tiny_models.LAYERS + 1


def test_factors_sums_and_the_head_are_stored_in_half_precision(base: Path) -> None:
    model: Any = task.start(_pack(base), base, RECIPE)
    stored = store.difference(model, load_file(base / "model.safetensors"))
    assert {tensor.dtype for tensor in stored.values()} == {torch.float16}
    assert {key.rpartition(".")[2] for key in stored} == {"left", "right", "added", "whole"}
    assert {key for key in stored if key.endswith(".whole")} == {"classifier.weight.whole", "classifier.bias.whole"}
    assert not [key for key in stored if "embeddings" in key or "original" in key]
    with torch.no_grad():
        model.classifier.bias.fill_(1e6)
    with pytest.raises(ValueError, match="diverged"):
        store.difference(model, load_file(base / "model.safetensors"))


def test_a_model_is_like_itself_and_unlike_another(base: Path) -> None:
    encoder = load_directory(base)
    items = [_named(text) for text in tiny_models.TEXTS]
    np.testing.assert_allclose(similarity.layer_similarity(encoder, encoder, items, words=30), 1)
    other = similarity.layer_similarity(encoder, encoder.randomised(3, keep_embeddings=True), items, words=30)
    assert other[0] == pytest.approx(1)
    assert other[-1] < 0.9


@pytest.mark.slow
def test_the_data_is_read_into_one_scheme() -> None:
    folder = shared("data/ner").parent
    ner = data.ner(folder)
    used = {tag for item in ner.train for tag in item.segments[0].tags or ()}
    assert used == {*data.TAGS, "B-?", "I-?"}
    judged = {tag for items in ner.dev.values() for item in items for tag in item.segments[0].tags or ()}
    assert judged <= set(data.TAGS)
    texts = {item.segments[0].text for item in ner.train}
    assert not [item for item in ner.dev["english"] if item.segments[0].text in texts]


@pytest.mark.slow
def test_held_out_words_are_not_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "GENERATED_PAIRS", 3_000)
    monkeypatch.setattr(data, "LEARNT_PAIRS", 1_000)
    monkeypatch.setattr(data, "JUDGED_PAIRS", 300)
    pairs = data.pairs(shared("data/nli").parent)
    assert set(pairs.dev) == {"generated", "generated, new words", "snli", "mnli_matched", "mnli_mismatched"}
    assert {item.label for item in pairs.train} == set(data.ENTAILMENT)
    learnt = {word.lower() for item in pairs.train + pairs.stop for part in item.segments for word in part.words}
    assert not learnt & data.HELD_OUT_WORDS
    new = {word.lower() for item in pairs.dev["generated, new words"] for part in item.segments for word in part.words}
    assert new >= data.HELD_OUT_WORDS
    train_texts, test_texts = (
        {item.segments[0].text for item in part} for part in (pairs.train, pairs.dev["generated"])
    )
    assert not train_texts & test_texts
