"""Fine-tuning of a tiny random model: encoding, baselines, training, storage and report."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pretraining.finetuning import (
    baselines,
    data,
    encoded_task,
    low_rank,
    model,
    prediction,
    report,
    similarity,
    storage,
    training,
)
from safetensors.torch import load_file

import tiny_models
from bertology.corpus.bio import encode
from bertology.corpus.example import Example
from bertology.corpus.sentence import Span, sentence_from_text
from bertology.encoder.delta_checkpoint import load_delta
from bertology.encoder.huggingface_loading import load_directory
from bertology.estimates import metrics
from bertology.training.encoded_examples import encode_classification, encode_tagging, iterate_batches
from bertology.training.loop import learning_rate_at, trainable_parameters
from bertology.training.tasks.token_classification import count_correct_spans
from shared_data import shared

LABELS = ("bad", "good")
TAGS = ("O", "B-PER", "I-PER")
WORDS = ["the", "keys", "to", "table", "we", "walked", "along", "river", "and", "saw", "lights", "of", "small", "town"]
LEARNING_RATE = 1e-2
CONFIG = training.FinetuningConfig(epochs=2, batch_size=8, learning_rate=LEARNING_RATE, rank=4)


@pytest.fixture
def base() -> Path:
    return tiny_models.directory("bert", "ForPreTraining")


def _classification_examples(count: int) -> list[Example]:
    """Random texts, good if they contain the word river."""
    rng = random.Random(0)
    texts: list[Example] = []
    for number in range(count):
        words = rng.choices([word for word in WORDS if word != "river"], k=rng.randint(2, 9))
        if number % 2:
            words[rng.randrange(len(words))] = "river"
        texts.append(Example((sentence_from_text(" ".join(words)),), label=LABELS[number % 2]))
    return texts


def _tagged(text: str, *spans: Span) -> Example:
    sentence = sentence_from_text(text)
    return Example((replace(sentence, entities=spans, tags=encode(spans, len(sentence))),))


def _dataset(base: Path, *, tags: bool = False) -> encoded_task.EncodedTask:
    """A small encoded task with one test set."""
    tokenise, tokeniser = load_directory(base).tokenise, encoded_task.tokeniser_hash(base)
    if tags:
        train = [_tagged("we saw the small town", Span(4, 5, "PER")), _tagged("the lights of we", Span(1, 2, "?"))] * 10
        test = [train[0], _tagged("the lights")] * 4
        task_data = data.TaskData(TAGS, train, train, {"test": test})
        return encoded_task.encode_data("ner", task_data, tokenise, tokeniser, max_length=32)
    texts = _classification_examples(96)
    test = [replace(example, factors={"phenomenon": str(example.label)}) for example in texts[80:]]
    task_data = data.TaskData(LABELS, texts[:64], texts[64:80], {"test": test})
    return encoded_task.encode_data("sentiment", task_data, tokenise, tokeniser, max_length=32)


def _validation_score(dataset: encoded_task.EncodedTask) -> training.ScoreFunction:
    return model.task_score(dataset, dataset.splits[encoded_task.VALIDATION])


def test_a_long_text_is_truncated_at_its_start_and_a_long_pair_is_skipped(base: Path) -> None:
    tokenise = load_directory(base).tokenise
    text = Example((sentence_from_text("the keys to the table are on the small cabinet"),), label="good")
    pair = Example((text.segments[0], text.segments[0]), "pair", "bad")
    encoded = encode_classification([text, pair], tokenise, LABELS, max_length=6)
    full = encode_classification([text], tokenise, LABELS, max_length=60).encoded[0]
    assert encoded.n_truncated == 2
    assert encoded.examples == [text]
    assert [example.input_ids.tolist() for example in encoded.encoded] == [[full.input_ids[0], *full.input_ids[-5:]]]
    assert encoded.encoded[0].labels.tolist() == [1]


def test_the_first_token_of_a_word_gets_its_tag_and_unknown_tags_are_ignored(base: Path) -> None:
    tokenise = load_directory(base).tokenise
    example = _tagged("unbelievable story", Span(0, 1, "PER"), Span(1, 2, "?"))
    encoded = encode_tagging([example], tokenise, TAGS, max_length=60)
    assert encoded.n_truncated == 0
    assert encoded.encoded[0].labelled_positions.tolist() == [1]
    assert encoded.encoded[0].labels[1] == TAGS.index("B-PER")
    too_short = encode_tagging([example], tokenise, TAGS, max_length=4)
    assert (too_short.examples, too_short.n_truncated) == ([], 1)


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_every_example_is_in_one_batch_with_its_labels(base: Path, seed: int | None) -> None:
    examples = _dataset(base).splits[encoded_task.TRAIN]
    batches = list(iterate_batches(examples, 7, shuffle_seed=seed))
    assert sorted(index for batch in batches for index in batch.indices) == list(range(len(examples)))
    for batch in batches:
        for row, index in enumerate(batch.indices):
            length = int(batch.inputs.attention_mask[row].sum())
            assert batch.inputs.input_ids[row, :length].tolist() == examples[index].input_ids.tolist()
            assert batch.labels[row].tolist() == examples[index].labels.tolist()
    repeated = [batch.indices for batch in iterate_batches(examples, 7, shuffle_seed=seed)]
    assert repeated == [batch.indices for batch in batches]
    if seed is not None:
        assert repeated != [batch.indices for batch in iterate_batches(examples, 7, shuffle_seed=seed + 1)]


def test_the_learning_rate_warms_up_and_decays() -> None:
    rates = [learning_rate_at(CONFIG, step, 20) for step in range(20)]
    assert rates[0] == pytest.approx(LEARNING_RATE / 2)
    assert max(rates) == rates[1] == pytest.approx(LEARNING_RATE)
    assert rates[1:] == sorted(rates[1:], reverse=True)
    assert 0 < rates[-1] < LEARNING_RATE / 10


@pytest.mark.parametrize("tags", [False, True])
def test_an_encoded_task_is_read_as_it_was_written(base: Path, tmp_path: Path, tags: bool) -> None:
    dataset = _dataset(base, tags=tags)
    encoded_task.write(dataset, tmp_path / "task.npz")
    loaded = encoded_task.read(tmp_path / "task.npz", base)
    assert (loaded.task, loaded.labels, loaded.statistics) == (dataset.task, dataset.labels, dataset.statistics)
    assert list(loaded.splits) == list(dataset.splits)
    for name, examples in dataset.splits.items():
        for example, expected in zip(loaded.splits[name], examples, strict=True):
            assert example.labels.tolist() == expected.labels.tolist()
            assert example.input_ids.tolist() == expected.input_ids.tolist()
            assert example.token_type_ids.tolist() == expected.token_type_ids.tolist()
    phenomena = [example.phenomenon for example in dataset.test["test"]]
    assert [example.phenomenon for example in loaded.test["test"]] == phenomena


def test_an_encoded_task_of_another_tokeniser_is_refused(base: Path, tmp_path: Path) -> None:
    encoded_task.write(replace(_dataset(base), tokeniser="another"), tmp_path / "task.npz")
    with pytest.raises(ValueError, match="another tokeniser"):
        encoded_task.read(tmp_path / "task.npz", base)


def test_factors_do_not_change_the_model_before_training(base: Path) -> None:
    network: Any = model.initial_model(_dataset(base), base, CONFIG)
    base_weights = load_file(base / "model.safetensors")
    factors = dict(low_rank.low_rank_factors(network))
    layers = {name.partition("layer.")[2].partition(".")[0] for name in factors}
    assert {*map(str, range(tiny_models.LAYERS))} <= layers
    assert "bert.pooler.dense.weight" in factors
    assert not [name for name in factors if "embeddings" in name or "classifier" in name]
    for name in factors:
        weight = network.get_submodule(name.removesuffix(".weight")).weight
        torch.testing.assert_close(weight, base_weights[name].float())


def test_training_changes_factors_and_not_the_matrices_of_the_base(base: Path, tmp_path: Path) -> None:
    dataset = _dataset(base)
    network: Any = model.initial_model(dataset, base, CONFIG)
    config = replace(CONFIG, epochs=40, learning_rate=5e-3)
    score = _validation_score(dataset)
    history = training.train(network, dataset.splits[encoded_task.TRAIN], score, config, tmp_path)
    assert history.best_score >= 0.9
    assert score(network) == history.best_score
    base_weights = load_file(base / "model.safetensors")
    for name, factors in low_rank.low_rank_factors(network):
        module = network.get_submodule(name.removesuffix(".weight"))
        expected = base_weights[name].float()
        torch.testing.assert_close(module.parametrizations.weight.original, expected, rtol=0, atol=0)
        change = module.weight.detach() - expected
        assert 0 < int(torch.linalg.matrix_rank(change, atol=1e-4)) <= CONFIG.rank
        assert factors.left.shape[1] == CONFIG.rank
    name = "bert.embeddings.word_embeddings.weight"
    torch.testing.assert_close(network.state_dict()[name], base_weights[name].float(), rtol=0, atol=0)
    name = "bert.encoder.layer.0.output.LayerNorm.bias"
    assert not torch.equal(network.state_dict()[name], base_weights[name].float())


def test_the_same_seed_gives_the_same_weights(base: Path, tmp_path: Path) -> None:
    dataset = _dataset(base)
    trained: list[dict[str, torch.Tensor]] = []
    for seed in (1, 1, 2):
        config = replace(CONFIG, seed=seed, epochs=1)
        network = model.initial_model(dataset, base, config)
        training.train(network, dataset.splits[encoded_task.TRAIN], _validation_score(dataset), config, tmp_path)
        trained.append({name: weights.detach() for name, weights in trainable_parameters(network).items()})
    torch.testing.assert_close(trained[0], trained[1], rtol=0, atol=0)
    assert not torch.equal(trained[0]["classifier.weight"], trained[2]["classifier.weight"])


def test_training_restores_the_best_epoch(base: Path, tmp_path: Path) -> None:
    dataset = _dataset(base)
    config = replace(CONFIG, epochs=3)
    network = model.initial_model(dataset, base, config)
    scores = iter([0.5, 0.7, 0.6])
    weights_by_epoch: list[dict[str, torch.Tensor]] = []

    def score(current: Any) -> float:
        weights = {name: weights.detach().clone() for name, weights in trainable_parameters(current).items()}
        weights_by_epoch.append(weights)
        return next(scores)

    history = training.train(network, dataset.splits[encoded_task.TRAIN][:8], score, config, tmp_path)
    assert (history.best_epoch, history.best_score, len(history.epochs)) == (2, 0.7, 3)
    for restored in (network, model.trained_model(dataset, base, tmp_path)):
        weights = {name: weights.detach() for name, weights in trainable_parameters(restored).items()}
        torch.testing.assert_close(weights, weights_by_epoch[1], rtol=0, atol=0)


def test_all_weights_are_trained_from_scratch(base: Path) -> None:
    config = model.task_config("sentiment", 0, from_scratch=True)
    network: Any = model.initial_model(_dataset(base), base, config)
    assert config.learning_rate == model.FROM_SCRATCH_LEARNING_RATE
    assert all(weights.requires_grad for weights in network.parameters())
    assert not dict(low_rank.low_rank_factors(network))
    assert not torch.equal(
        network.bert.embeddings.word_embeddings.weight,
        load_file(base / "model.safetensors")["bert.embeddings.word_embeddings.weight"],
    )


def test_an_entity_is_correct_if_its_span_and_type_are() -> None:
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "O"]]
    predicted = [["B-PER", "I-PER", "O", "B-PER"], ["I-PER", "O"]]
    counts = count_correct_spans(gold, predicted)
    np.testing.assert_array_equal(counts.correct, [2, 0])
    np.testing.assert_array_equal(counts.total, [4, 1])
    assert counts.score == pytest.approx(2 / 5)
    assert count_correct_spans(gold, [["O"] * 4, ["O"] * 2]).score == 0


def test_a_bootstrap_interval_has_the_expected_width() -> None:
    score = metrics.bootstrap_score(metrics.Counts(np.array([1.0, 0.0] * 50), np.ones(100)))
    assert score.n == 100
    assert score.low < score.value == 0.5 < score.high
    assert score.high - score.low == pytest.approx(4 * 0.05, rel=0.2)


def test_baselines_have_the_expected_scores(base: Path) -> None:
    scores = _dataset(base).statistics["baselines"]["test"]
    assert scores["majority class"]["value"] == 0.5
    assert scores["bag of words"]["value"] > 0.9
    assert scores["bag of tokens"]["value"] > 0.6
    assert _dataset(base, tags=True).statistics["baselines"]["test"]["no entities"]["value"] == 0
    train = [_tagged("we saw the town", Span(3, 4, "LOC"))]
    assert baselines.most_frequent_tags(train, train).score == 1
    assert baselines.most_frequent_tags(train, [_tagged("a city", Span(1, 2, "LOC"))]).score == 0


def test_the_bag_of_words_of_a_pair_has_only_the_hypothesis(base: Path) -> None:
    tokenise = load_directory(base).tokenise
    pair = Example((sentence_from_text("the keys"), sentence_from_text("we walked")), "pair", "bad")
    hypothesis = Example(pair.segments[1:], label="bad")
    encoded_pair = encode_classification([pair], tokenise, LABELS, max_length=32)
    encoded_hypothesis = encode_classification([hypothesis], tokenise, LABELS, max_length=32)
    assert baselines.last_texts(encoded_pair) == ["we walked"]
    expected = " ".join(map(str, encoded_hypothesis.encoded[0].input_ids[1:]))
    assert baselines.last_tokens(encoded_pair) == [expected]


def test_no_text_is_in_two_splits() -> None:
    examples = [replace(text, label=str(n)) for text in _classification_examples(50) for n in range(3)]
    splits = data.split(examples, (90, 15, 30))
    assert [len(split) for split in splits] == pytest.approx([90, 15, 30], abs=3)
    texts = [{example.segments[0].text for example in split} for split in splits]
    assert not (texts[0] & texts[1] or texts[0] & texts[2] or texts[1] & texts[2])
    assert data.split(examples[::-1], (90, 15, 30))[0][0].segments == splits[0][0].segments


def test_the_training_and_test_reviews_have_no_text_in_common(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "QUARTER", 2)
    texts = ["a", "b", "c<br />d", "b", "e", "f", "g", "e"]
    rows: list[dict[str, str | int]] = [{"t": text, "s": int(index >= 4)} for index, text in enumerate(texts)]
    halves = data.reviews(rows)
    assert [(example.segments[0].text, example.label) for example in halves["test"]] == [
        ("a", "negative"), ("b", "negative"), ("e", "positive"), ("f", "positive")
    ]  # fmt: skip
    assert [example.segments[0].text for example in halves["train"]] == ["c d", "g"]
    with pytest.raises(ValueError, match="another order"):
        data.reviews(rows[::-1])


@pytest.mark.parametrize("tags", [False, True])
def test_a_stored_model_predicts_like_the_trained_one(base: Path, tmp_path: Path, tags: bool) -> None:
    dataset = _dataset(base, tags=tags)
    network: Any = model.initial_model(dataset, base, CONFIG)
    run = tmp_path / "sentiment-0"
    training.train(network, dataset.splits[encoded_task.TRAIN], _validation_score(dataset), CONFIG, run)
    storage.store(network, base, tmp_path / "stored")
    stored = load_delta(base, tmp_path / "stored")
    assert stored.task_heads == {"token" if tags else "label"}
    assert stored.model.config.id2label == dict(enumerate(dataset.labels))
    before, after = (np.concatenate(prediction.predict(each, dataset.test["test"])) for each in (network, stored.model))
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-2)
    scores = report.report(dataset, base, tmp_path / "stored", [run], run, device="cpu")
    assert scores["stored"]["test"]["n"] == len(dataset.test["test"])
    assert set(scores["stored"]) == ({"test"} if tags else {"test", "test: bad", "test: good"})
    assert scores["storage"]["unchanged_predictions"] >= 0.995
    assert scores["storage"]["rank"] == CONFIG.rank
    assert scores["similarity"][0] == pytest.approx(1)
    assert len(scores["similarity"]) == tiny_models.LAYERS + 1


def test_factors_differences_and_the_task_head_are_stored_in_half_precision(base: Path) -> None:
    network: Any = model.initial_model(_dataset(base), base, CONFIG)
    base_weights = load_file(base / "model.safetensors")
    tensors = storage.difference(network, base_weights)
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float16}
    # The suffixes of the distributed files.
    assert {key.rpartition(".")[2] for key in tensors} == {"left", "right", "added", "whole"}
    assert {key for key in tensors if key.endswith(".whole")} == {"classifier.weight.whole", "classifier.bias.whole"}
    assert not [key for key in tensors if "embeddings" in key or "original" in key]
    with torch.no_grad():
        network.classifier.bias.fill_(1e6)
    with pytest.raises(ValueError, match="diverged"):
        storage.difference(network, base_weights)


def test_a_model_is_similar_to_itself_and_not_to_a_randomised_one(base: Path) -> None:
    encoder = load_directory(base)
    examples = [_tagged(text) for text in tiny_models.TEXTS]
    np.testing.assert_allclose(similarity.layer_similarity(encoder, encoder, examples, max_words=30), 1)
    randomised = encoder.randomised(3, keep_embeddings=True)
    values = similarity.layer_similarity(encoder, randomised, examples, max_words=30)
    assert values[0] == pytest.approx(1)
    assert values[-1] < 0.9


@pytest.mark.slow
def test_all_ner_sources_are_read_with_one_tag_set() -> None:
    ner = data.ner(shared("data/ner").parent)
    train_tags = {tag for example in ner.train for tag in example.segments[0].tags or ()}
    assert train_tags == {*data.TAGS, "B-?", "I-?"}
    test_tags = {
        tag for examples in ner.test.values() for example in examples for tag in example.segments[0].tags or ()
    }
    assert test_tags <= set(data.TAGS)
    train_texts = {example.segments[0].text for example in ner.train}
    assert not [example for example in ner.test["english"] if example.segments[0].text in train_texts]


@pytest.mark.slow
def test_held_out_words_are_not_in_the_training_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "GENERATED_PAIRS", 3_000)
    monkeypatch.setattr(data, "TRAIN_PAIRS", 1_000)
    monkeypatch.setattr(data, "TEST_PAIRS", 300)
    pairs = data.pairs(shared("data/nli").parent)
    assert set(pairs.test) == {"generated", "generated, new words", "snli", "mnli_matched", "mnli_mismatched"}
    assert {pair.label for pair in pairs.train} == set(data.ENTAILMENT)
    assert not _words(pairs.train + pairs.validation) & data.HELD_OUT_WORDS
    assert _words(pairs.test["generated, new words"]) >= data.HELD_OUT_WORDS
    train_premises, test_premises = (
        {pair.segments[0].text for pair in split} for split in (pairs.train, pairs.test["generated"])
    )
    assert not train_premises & test_premises


def _words(examples: list[Example]) -> set[str]:
    return {word.lower() for example in examples for segment in example.segments for word in segment.words}
