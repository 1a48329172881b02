"""What fine-tuning changed: planted layers, heads and needed heads are named; labels not learnt are no evidence."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import pytest

import planted_heads
import tiny_models
from bertology.analyses.run import RunInputs
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import load_corpus
from bertology.recording.plan import RecordingConfig
from bertology.results.shapes import Head
from bertology.views.report.export import as_json, as_markdown
from bertology.views.report.finetuning.changes import FinetuningChanges
from bertology.views.report.finetuning.measure import finetuning_changes
from bertology.views.report.finetuning.sentences import conclusions
from bertology.views.report.page import report_page
from planted_heads import PLANTED
from planted_models import SEP, attention_to, attention_to_next, other_random_states, planted_model
from views.report.example_content import content

ENGLISH = load_corpus("english", limit=12)


def changes(inputs: RunInputs) -> FinetuningChanges:
    found = finetuning_changes(inputs)
    assert found is not None
    return found


@cache
def planted_classifier() -> FinetuningChanges:
    encoder, corpus = planted_heads.single_head()
    return changes(RunInputs(corpus, encoder.randomised(seed=1), against=encoder))


def test_one_model_changed_nothing() -> None:
    assert finetuning_changes(RunInputs(ENGLISH, planted_model("one"))) is None


def test_the_score_on_the_labels_has_an_interval_and_baselines() -> None:
    score = planted_classifier().score
    assert score is not None and (score.metric, score.task) == ("accuracy", "text classification")
    assert score.score.value == 1.0 and score.score.low < 1.0 and score.score.n > 0
    assert score.baselines["majority class"].value == pytest.approx(0.5)
    assert {"majority class", "random weights"} <= set(score.baselines)
    assert score.is_above_majority and "more than always the most frequent label." in conclusions(planted_classifier())


def test_the_planted_head_is_needed_and_no_other() -> None:
    found = planted_classifier()
    assert [head.stands_out for head in found.needed] == [True, False, False]
    assert found.needed[0].head == PLANTED and found.needed[0].score.value == pytest.approx(-0.5)
    assert f"the task needs {PLANTED}: without it the loss rises by 0.58 nats [" in conclusions(found)
    assert found.n_ablated_heads == planted_heads.LAYERS * planted_heads.HEADS


def test_labels_that_were_not_learnt_are_no_evidence() -> None:
    encoder, corpus = planted_heads.single_head()
    labels = [example.label for example in corpus]
    unrelated = Corpus(
        tuple(replace(example, label=labels[index // 2 * 3 % len(labels)]) for index, example in enumerate(corpus)), "x"
    )
    found = changes(RunInputs(unrelated, encoder, against=encoder))
    assert found.score is not None and not found.score.is_above_majority
    assert "is no evidence of a learnt task" in conclusions(found)
    # A model compared with itself, which has the same task head.
    assert found.score.baselines[f"{encoder.name}, before"] == found.score.score


def test_planted_layers_and_heads_are_named_with_what_they_did() -> None:
    before = planted_model("before", attention={range(1, 13): attention_to(SEP)})
    after = planted_model(
        "after",
        attention={range(1, 13): attention_to(SEP), range(5, 6): attention_to_next},
        states={range(7, 8): other_random_states},
    )
    found = changes(RunInputs(ENGLISH, before, against=after))
    assert [change.head for change in found.heads[:2]] == [Head(4, 0), Head(4, 1)]
    assert found.heads[0].divergence.value > 0.5 > found.heads[2].divergence.value == pytest.approx(0, abs=1e-6)
    assert (found.heads[0].pattern_before, found.heads[0].pattern_after) == ("vertical", "diagonal")
    assert found.heads[0].target is not None and found.heads[0].target.measure == "attention to [SEP]"
    assert found.heads[0].labels_before != found.heads[0].labels_after
    assert any("next word" in label for label in found.heads[0].labels_after)
    assert found.layers[0].layer == 7 and found.layers[0].similarity.value < 0.2
    assert found.layers[1].similarity.value == pytest.approx(1, abs=1e-6)
    assert found.score is None and "was not measured" in conclusions(found) and not found.needed
    assert found.unit == "tokens"


def test_models_with_different_tokenisers_are_compared_by_words() -> None:
    first, second = tiny_models.encoder("bert"), tiny_models.encoder("roberta")
    corpus, config = load_corpus("english", limit=60), RecordingConfig(overflow="skip")
    found = changes(RunInputs(corpus, first, against=second, config=config))
    assert found.unit == "words" and len(found.heads) == 5 and len(found.layers) == 3
    assert "heads" not in found.obstacles and "layers" not in found.obstacles


def test_the_report_shows_the_fields_in_every_format() -> None:
    found = planted_classifier()
    report = content(finetuning=found)
    record = json.loads(as_json(report))["fine_tuning"]
    assert record["conclusions"] == conclusions(found) and record["needed_heads"][0]["head"] == str(PLANTED)
    assert record["score"]["score"]["value"] == 1.0 and record["score"]["baselines"]["majority class"]["n"] > 0
    assert "## What fine-tuning changed" in as_markdown(report) and str(PLANTED) in as_markdown(report)
    html = report_page(report)
    assert 'id="fine-tuning"' in html and "Most changed heads" in html
    assert 'id="fine-tuning"' not in report_page(content())
