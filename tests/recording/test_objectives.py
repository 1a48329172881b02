"""The gradients of an objective are those of the model's loss or scores, each input by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import planted
import tiny_models
from bertology.analyses.attention.gradients import gradient_site
from bertology.analyses.attention.integrated_gradients import integrated_gradients
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.sentence import sentence_from_text
from bertology.encoder.encoder import Encoder
from bertology.encoder.token_batch import TokenBatch
from bertology.errors import Refusal
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record

TEXTS = ("The keys to the cabinet are on the table.", "A dog!", "It rains.")
CORPUS = planted.make_corpus(*TEXTS)
GOLD_LABELS = ("label_1", "0", "LABEL_0")
LABELLED = Corpus(
    tuple(Example((sentence_from_text(text),), label=gold) for text, gold in zip(TEXTS, GOLD_LABELS, strict=True))
)
GOLD_CLASSES = (1, 0, 0)
FLIPPED = Corpus(
    tuple(Example(example.segments, label=str(1 - gold)) for example, gold in zip(LABELLED, GOLD_CLASSES, strict=True))
)

CASES = [
    ("bert", "ForTokenClassification", "auto"),
    ("bert", "ForQuestionAnswering", "auto"),
    ("bert", "ForSequenceClassification", "auto"),
    ("bert", "ForSequenceClassification", "gold"),
    ("gpt2", "LMHeadModel", "auto"),
]


def _score(kind: str, objective: str, output: Any, batch: TokenBatch, gold: int) -> torch.Tensor:
    if kind == "ForQuestionAnswering":
        return output.start_logits.log_softmax(-1).max() + output.end_logits.log_softmax(-1).max()
    if kind == "ForTokenClassification":
        return output.logits.log_softmax(-1).max(-1).values[batch.non_special_mask].sum()
    if kind == "LMHeadModel":
        next_ids = batch.model_inputs.input_ids[:, 1:, None]
        return -output.logits[:, :-1].log_softmax(-1).gather(-1, next_ids).sum()
    scores = output.logits.log_softmax(-1)[0]
    return -scores[gold] if objective == "gold" else scores.max()


@pytest.mark.parametrize(("family", "kind", "objective"), CASES)
def test_gradients_are_those_of_the_model(family: str, kind: str, objective: str) -> None:
    model = tiny_models.encoder(family, kind)
    recording = record(model, LABELLED, [gradient_site], config=RecordingConfig(objective=objective))
    for index, recorded in enumerate(recording.inputs):
        reference = tiny_models.reference(model)
        batch = TokenBatch([recorded])
        inputs = batch.model_inputs
        options: dict[str, Any] = {"token_type_ids": inputs.token_type_ids} if family == "bert" else {}
        output: Any = reference(inputs.input_ids, output_attentions=True, **options)
        score = _score(kind, objective, output, batch, GOLD_CLASSES[index])
        for layer, gradient in enumerate(torch.autograd.grad(score, output.attentions)):
            visible = output.attentions[layer][0] > 0
            expected = (gradient[0].abs() * visible).sum((1, 2)) / visible.sum((1, 2))
            recorded_means = recording[gradient_site][index][layer, :, 0]
            np.testing.assert_allclose(recorded_means, expected.detach().numpy(), rtol=1e-4, atol=1e-7)


def test_a_wrong_class_has_another_gradient_than_the_predicted_one() -> None:
    model = tiny_models.encoder("bert", "ForSequenceClassification")
    prediction, gold, flipped = (
        record(model, corpus, [gradient_site], config=RecordingConfig(objective=objective))[gradient_site]
        for corpus, objective in ((LABELLED, "prediction"), (LABELLED, "gold"), (FLIPPED, "gold"))
    )
    for index in range(len(TEXTS)):
        predicted = prediction[index][..., 0]
        equal = [bool(np.allclose(array[index][..., 0], predicted, rtol=1e-5, atol=0)) for array in (gold, flipped)]
        assert sorted(equal) == [False, True]  # one of the two classes is predicted


def _assert_refused(model: Encoder, corpus: Corpus, objective: str, match: str) -> None:
    with pytest.raises(Refusal, match=match):
        record(model, corpus, [gradient_site], config=RecordingConfig(objective=objective))


def test_objectives_without_task_head_or_labels_are_refused() -> None:
    classifier = tiny_models.encoder("bert", "ForSequenceClassification")
    _assert_refused(classifier, CORPUS, "gold", "without a label")
    _assert_refused(classifier, Corpus((Example((sentence_from_text("Hm."),), label="odd"),)), "gold", "odd")
    _assert_refused(classifier, LABELLED, "lm", "no task head for the objective 'lm'")
    _assert_refused(classifier, LABELLED, "loss", "no objective called 'loss'")
    choice = tiny_models.encoder("bert", "ForMultipleChoice")
    _assert_refused(choice, LABELLED, "gold", "no task head for the objective 'gold'")


def test_integrated_gradients_depend_on_the_gold_class() -> None:
    model = tiny_models.encoder("bert", "ForSequenceClassification")
    gold, flipped = (
        run_analysis(
            integrated_gradients,
            RunInputs(encoder=model, corpus=corpus, config=RecordingConfig(objective="gold")),
            {"integration_steps": 8},
        )
        for corpus in (LABELLED, FLIPPED)
    )
    assert gold.to_json()["data"] != flipped.to_json()["data"]
