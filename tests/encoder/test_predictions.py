from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import bertology
import planted_heads
from bertology.corpus.example import TextInput
from bertology.corpus.sentence import sentence_from_text
from bertology.encoder.encoder import TaskEncoder
from bertology.encoder.predictions import predictions_by_layer, read_predictions
from bertology.encoder.resumable_encoder import make_resumable
from bertology.encoder.tokens import TokenisedInput

TEXT = "The old man [MASK] the door ."


def tokenise(encoder: Any, *texts: str) -> TokenisedInput:
    (tokens,) = encoder.tokenise([TextInput(tuple(map(sentence_from_text, texts)))])
    return tokens


def test_masked_tokens_are_the_most_probable_by_transformers() -> None:
    encoder: Any = bertology.load("tiny")
    inputs = encoder.batch(TEXT)
    with torch.no_grad():
        predictions = read_predictions(encoder, tokenise(encoder, TEXT), encoder.forward(inputs).logits, n_candidates=5)
        logits = encoder.model(input_ids=inputs.input_ids).prediction_logits[0, 4]
    best = torch.topk(logits.softmax(-1), 5)
    (masked,) = predictions.masked_tokens
    assert masked.position == 4 and masked.token == "[MASK]"
    assert [c.text for c in masked.candidates] == encoder.hf_tokenizer.convert_ids_to_tokens(best.indices.tolist())
    np.testing.assert_allclose([c.probability for c in masked.candidates], best.values, rtol=1e-4)


def test_a_reference_adds_its_candidates() -> None:
    encoder: Any = bertology.load("tiny")
    tokens = tokenise(encoder, TEXT)
    with torch.no_grad():
        logits = encoder.forward(encoder.batch(TEXT)).logits
        changed = encoder.without("1-1", "1-2", "1-3", "1-4").forward(encoder.batch(TEXT)).logits
    before = read_predictions(encoder, tokens, logits, n_candidates=3)
    after = read_predictions(encoder, tokens, changed, n_candidates=3, reference=before)
    texts = {candidate.text for candidate in after.masked_tokens[0].candidates}
    assert {candidate.text for candidate in before.masked_tokens[0].candidates} <= texts


def test_a_layer_is_read_as_the_model_without_the_layers_above_predicts() -> None:
    encoder: Any = bertology.load("tiny")
    tokens, inputs = tokenise(encoder, TEXT), encoder.batch(TEXT)
    resumable = make_resumable(encoder)
    assert resumable is not None
    with torch.no_grad():
        readings = predictions_by_layer(resumable, tokens, inputs)
        truncated = encoder.with_layers(1).forward(inputs).logits
    assert [reading.layer for reading in readings] == [0, 1, 2]
    expected = read_predictions(encoder, tokens, truncated)
    for read, predicted in zip(
        readings[1].predictions.masked_tokens[0].candidates, expected.masked_tokens[0].candidates, strict=True
    ):
        assert read.text == predicted.text and read.probability == pytest.approx(predicted.probability, rel=1e-4)


def test_classes_have_their_names() -> None:
    encoder, corpus = planted_heads.single_head()
    example = corpus[0]
    tokens = encoder.tokenise(list(example.text_inputs))[0]
    with torch.no_grad():
        output = encoder.forward(encoder.batch(example.segments[0].text))
    (classes,) = read_predictions(encoder, tokens, output.logits).classes
    best = max(classes.candidates, key=lambda candidate: candidate.probability)
    assert best.text == example.label and sum(c.probability for c in classes.candidates) == pytest.approx(1)


class _Tagger:
    """Only what reading needs of an encoder."""

    mask_token_id = None
    labels = ("O", "PER")


def test_tags_answers_and_scores_are_read_from_logits() -> None:
    encoder: Any = bertology.load("tiny")
    tagger: TaskEncoder = _Tagger()  # pyright: ignore[reportAssignmentType]
    tokens = tokenise(encoder, "who came", "the king came")
    tags = torch.zeros(1, len(tokens), 2)
    tags[0, 5, 1] = 9.0
    start, end = torch.full((1, len(tokens)), -9.0), torch.full((1, len(tokens)), -9.0)
    start[0, 4], end[0, 5], end[0, 1] = 5.0, 5.0, 9.0
    logits = {"token": tags, "answer_start": start, "answer_end": end, "label": torch.tensor([[0.3]])}
    predictions = read_predictions(tagger, tokens, logits)
    best = {prediction.position: prediction.candidates[0].text for prediction in predictions.tags}
    assert best == {1: "O", 2: "O", 4: "O", 5: "PER", 6: "O"}
    answer = predictions.answers[0]
    assert (answer.start, answer.end, answer.text) == (4, 5, "the king")
    assert predictions.classes[0].score == pytest.approx(0.3) and predictions.classes[0].candidates == ()
