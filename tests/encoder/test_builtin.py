"""The built-in models load, and do what their model cards say."""

from __future__ import annotations

import pytest
import torch

from bertology.analyses.evaluation.evaluation import prepare_evaluation
from bertology.corpus.example import TextInput
from bertology.corpus.generate import generate
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import sentence_from_text
from bertology.encoder.builtin import BUILT_IN_MODELS
from bertology.encoder.encoder import ModelInputs, TaskEncoder
from bertology.encoder.load import load
from bertology.estimates.metrics import bootstrap_score

FINE_TUNED = ("mini-sentiment", "mini-ner", "mini-pairs")


def predict(encoder: TaskEncoder, task_head: str, text: str) -> list[str]:
    tokens = encoder.tokenise([TextInput((sentence_from_text(text),))])[0]
    ids, types = (torch.from_numpy(array).long()[None] for array in (tokens.ids, tokens.type_ids))
    with torch.no_grad():
        logits = encoder.forward(ModelInputs(ids, types, torch.ones_like(ids))).logits[task_head]
    return [encoder.labels[index] for index in logits.argmax(-1).flatten().tolist()]


@pytest.mark.parametrize("name", sorted(BUILT_IN_MODELS))
def test_every_built_in_model_loads(name: str) -> None:
    encoder = load(name)
    assert encoder.name == name
    assert encoder.layers > 0


@pytest.mark.parametrize("name", FINE_TUNED)
def test_fine_tuned_models_share_the_embeddings_of_mini_but_no_layer(name: str) -> None:
    mini, fine_tuned = load("mini"), load(name)
    tokens = mini.tokenise([TextInput((sentence_from_text("Mary went to the store in Paris."),))])[0]
    ids = torch.from_numpy(tokens.ids).long()[None]
    batch = ModelInputs(ids, torch.zeros_like(ids), torch.ones_like(ids))
    with torch.no_grad():
        before, after = (encoder.forward(batch, hidden=True).hidden_states for encoder in (mini, fine_tuned))
    # Weights are read in half precision and added in full precision, so that the embeddings are the same numbers.
    torch.testing.assert_close(before[0], after[0], rtol=0, atol=0)
    assert all((first - second).abs().max() > 0.01 for first, second in zip(before[1:], after[1:], strict=True))


def test_sentiment_separates_good_from_bad_reviews() -> None:
    encoder = load("mini-sentiment")
    assert isinstance(encoder, TaskEncoder)
    good, bad = "A wonderful film, moving and beautifully acted.", "A dull and awful mess, a complete waste of time."
    assert [predict(encoder, "label", text) for text in (good, bad)] == [["positive"], ["negative"]]


def test_named_entity_recognition_is_as_good_as_the_card_says() -> None:
    encoder, corpus = load("mini-ner"), load_corpus("english", limit=120)
    score = bootstrap_score(prepare_evaluation(encoder, corpus).scores(encoder.forward).counts)
    # 54.8 (46.2 to 62.7) % of all 355 sentences; a look-up of the training tags finds 11.4 %.
    assert 0.35 < score.value < 0.75


def test_inference_on_pairs_of_another_seed_is_as_good_as_the_card_says() -> None:
    encoder, corpus = load("mini-pairs"), generate("nli", size=200, seed=77)
    score = bootstrap_score(prepare_evaluation(encoder, corpus).scores(encoder.forward).counts)
    # 94.3 % for known words and 90.8 % for new ones; with 200 pairs the standard error is about 4 points.
    assert 0.86 < score.value <= 1
