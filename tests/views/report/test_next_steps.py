"""Commands of a report: they name the model and corpus, and options that differ from their defaults."""

from __future__ import annotations

from dataclasses import replace

from bertology.claims.catalogue import all_claims
from bertology.claims.claim import ClaimRun
from bertology.views.report.next_steps import claim_command, next_steps
from views.report.example_content import SUBJECT, content, measured

SLOW = next(claim for claim in all_claims() if claim.slow)


def test_next_steps_are_those_that_were_not_taken() -> None:
    commands = [step.command for step in next_steps(content(claim_results=[measured()], not_run=[SLOW]))]
    assert commands == [
        "bertology report mini --full",
        "bertology report mini --against FINE_TUNED",
        "bertology report mini --corpus texts.txt",
        'bertology view --model mini "She opened the old letters."',
    ]
    compared = replace(SUBJECT, against="mini-pairs", corpus="my texts.txt")
    commands = [step.command for step in next_steps(content(subject=compared, not_run=[SLOW]))]
    assert commands[0] == "bertology report mini --against mini-pairs --corpus 'my texts.txt' --full"
    assert not any("FINE_TUNED" in command for command in commands)
    assert not any("texts.txt" in command for command in commands[1:])
    recorded = content(subject=replace(SUBJECT, is_recorded=True), not_run=[SLOW])
    assert [step.command for step in next_steps(recorded)] == ["bertology report mini"]
    assert "--recording DIR" in claim_command(ClaimRun(analysis="attention/targets"), recorded)


def test_the_sentence_of_an_example_is_in_the_language_of_the_corpus() -> None:
    for language, sentence in (
        ("Chinese", "她打开了那些旧信。"),
        ("other", "TEXT"),
        (None, "She opened the old letters."),
    ):
        subject = replace(SUBJECT, corpus="treebank.conllu", language=language)
        commands = [step.command for step in next_steps(content(claim_results=[measured()], subject=subject))]
        assert f'bertology view --model mini "{sentence}"' in commands


def test_the_command_of_a_figure_names_only_options_that_differ() -> None:
    run = ClaimRun(analysis="heads/dependency", options={"show": "heads", "min_examples": 20})
    command = claim_command(run, content())
    assert command == (
        "bertology run heads/dependency --model mini --corpus english --show heads --figure dependency.svg"
    )
    stimuli = ClaimRun(analysis="attention/model_similarity", corpus="generated:agreement@7:400")
    compared = content(subject=replace(SUBJECT, against="mini-pairs"))
    assert "--corpus generated:agreement@7:400 --against mini-pairs" in claim_command(stimuli, compared)
    tuned = ClaimRun(analysis="attention/targets", target="against")
    assert "--model mini-pairs" in claim_command(tuned, compared)
