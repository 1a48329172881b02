"""The gradients of an objective are those of the model's own loss or scores, each sentence by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import models
import planted
from bertology.analyses.attention.importance import IMPORTANCE
from bertology.analyses.attention.integrated import integrated
from bertology.analyses.run import Subject, run
from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import from_text
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.recording.frame import Frame
from bertology.recording.policy import Policy
from bertology.recording.recorder import record

TEXTS = ("The keys to the cabinet are on the table.", "A dog!", "It rains.")
CORPUS = planted.corpus_of(*TEXTS)
GOLDS = ("label_1", "0", "LABEL_0")
LABELLED = Corpus(tuple(Item((from_text(text),), label=gold) for text, gold in zip(TEXTS, GOLDS, strict=True)))
CLASSES = (1, 0, 0)

CASES = [
    ("bert", "ForTokenClassification", "auto"),
    ("bert", "ForQuestionAnswering", "auto"),
    ("bert", "ForSequenceClassification", "auto"),
    ("bert", "ForSequenceClassification", "gold"),
    ("gpt2", "LMHeadModel", "auto"),
]


def _score(kind: str, objective: str, returned: Any, frame: Frame, gold: int) -> torch.Tensor:
    if kind == "ForQuestionAnswering":
        return returned.start_logits.log_softmax(-1).max() + returned.end_logits.log_softmax(-1).max()
    if kind == "ForTokenClassification":
        return returned.logits.log_softmax(-1).max(-1).values[frame.ordinary].sum()
    if kind == "LMHeadModel":
        following = frame.batch.ids[:, 1:, None]
        return -returned.logits[:, :-1].log_softmax(-1).gather(-1, following).sum()
    scores = returned.logits.log_softmax(-1)[0]
    return -scores[gold] if objective == "gold" else scores.max()


@pytest.mark.parametrize(("family", "kind", "objective"), CASES)
def test_gradients_are_those_of_the_model(family: str, kind: str, objective: str) -> None:
    model = models.encoder(family, kind)
    recording = record(model, LABELLED, [IMPORTANCE], policy=Policy(objective=objective))
    for index, entry in enumerate(recording.entries):
        reference = models.reference(model)
        frame = Frame([entry])
        given: dict[str, Any] = {"token_type_ids": frame.batch.types} if family == "bert" else {}
        returned: Any = reference(frame.batch.ids, output_attentions=True, **given)
        score = _score(kind, objective, returned, frame, CLASSES[index])
        for layer, gradient in enumerate(torch.autograd.grad(score, returned.attentions)):
            seen = returned.attentions[layer][0] > 0
            expected = (gradient[0].abs() * seen).sum((1, 2)) / seen.sum((1, 2))
            found = recording[IMPORTANCE][index][layer, :, 0]
            np.testing.assert_allclose(found, expected.detach().numpy(), rtol=1e-4, atol=1e-7)


def test_a_wrong_answer_has_another_gradient_than_the_gold_one() -> None:
    model = models.encoder("bert", "ForSequenceClassification")
    asked = ((LABELLED, "top"), (LABELLED, "gold"), (_turned(), "gold"))
    top, gold, other = (record(model, corpus, [IMPORTANCE], policy=Policy(objective=name)) for corpus, name in asked)
    for index in range(len(TEXTS)):
        predicted, *both = (one[IMPORTANCE][index][..., 0] for one in (top, gold, other))
        alike = [bool(np.allclose(one, predicted, rtol=1e-5, atol=0)) for one in both]
        assert sorted(alike) == [False, True]  # of two classes one is predicted


def _turned() -> Corpus:
    return Corpus(tuple(Item(item.parts, label=str(1 - own)) for item, own in zip(LABELLED, CLASSES, strict=True)))


def _refused(model: Encoder, corpus: Corpus, objective: str, match: str) -> None:
    with pytest.raises(Refusal, match=match):
        record(model, corpus, [IMPORTANCE], policy=Policy(objective=objective))


def test_what_cannot_be_asked_is_refused() -> None:
    classes = models.encoder("bert", "ForSequenceClassification")
    _refused(classes, CORPUS, "gold", "without a class")
    _refused(classes, Corpus((Item((from_text("Hm."),), label="odd"),)), "gold", "the class odd")
    _refused(classes, LABELLED, "lm", "no head for the objective 'lm'")
    _refused(classes, LABELLED, "loss", "no objective called 'loss'")
    _refused(models.encoder("bert", "ForMultipleChoice"), LABELLED, "gold", "no head for the objective 'gold'")


def test_integrated_gradients_of_gold_classes() -> None:
    """What attention adds to the loss is what is left of it without attention, whatever the class."""
    model = models.encoder("bert", "ForSequenceClassification")
    subject = Subject(encoder=model, corpus=LABELLED, policy=Policy(objective="gold"))
    own = run(integrated, subject, {"steps": 8})
    turned = run(integrated, Subject(encoder=model, corpus=_turned(), policy=Policy(objective="gold")), {"steps": 8})
    assert own.to_json()["data"] != turned.to_json()["data"]
