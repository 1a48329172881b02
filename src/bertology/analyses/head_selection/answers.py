"""Answers of heads to gold links: which word the selected head and the baselines choose for each word pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bertology.analyses.head_selection.gold_links import NO_TARGET, GoldLink, LinkCounts, LinkItems
from bertology.arrays import Array
from bertology.corpus.sentence import ROOT
from bertology.encoder.encoder import Head
from bertology.encoder.token_batch import RecordedInput
from bertology.results.answers import Answer
from bertology.results.measured_shape import MODEL_SERIES

if TYPE_CHECKING:
    from bertology.analyses.head_selection.selection import HeadSelection

BEST_HEAD = "best head (not held out)"


def link_answers(counts: LinkCounts, items: LinkItems, selections: Sequence[HeadSelection | None]) -> Iterator[Answer]:
    """The word chosen for each link: by the head selected most often, the best head on all sentences, the baselines.

    An item is the sentence's id or number, then the numbers of the word and of its gold words, from 1; 0 is the root.
    `row` is the row of the table: a link is in several rows. `correct (held out)` is the proportion of splits in which
    the head selected on the other half is correct; its mean is the held-out accuracy. Baselines that choose no word
    have the probability of a correct answer as `correct`.
    """
    for unit, recorded_input, links, strongest in zip(
        items.units, items.inputs, items.links, items.strongest, strict=True
    ):
        if not links:
            continue
        read_words = np.array([link.read_word for link in links])
        words = strongest[:, :, : len(counts.directions), read_words].reshape(-1, len(links))
        is_correct = np.stack([np.isin(words[:, n], _word_targets(link)) for n, link in enumerate(links)], 1)
        baselines = {
            name: (
                baseline.p_correct(recorded_input, links),
                None if baseline.choose is None else baseline.choose(recorded_input, links),
            )
            for name, baseline in items.baselines.items()
        }
        for number, link in enumerate(links):
            item = describe_link(recorded_input, link)
            for label, selection in enumerate(selections):
                if selection is None or counts.labels[label] not in link.labels:
                    continue
                row = item | {"row": counts.labels[label]}
                for series, candidate in ((MODEL_SERIES, selection.selected), (BEST_HEAD, selection.best.index)):
                    layer, head, direction = counts.unravel(candidate)
                    yield row | {
                        "series": series,
                        "head": str(Head(layer, head)),
                        "direction": counts.directions[direction],
                        "variant": None,
                        **describe_choice(recorded_input, int(words[candidate, number]), is_head=True),
                        "correct": float(is_correct[candidate, number]),
                        "correct (held out)": _held_out(selection, unit, is_correct[:, number])
                        if series == MODEL_SERIES
                        else None,
                    }
                for series, (p_correct, chosen) in baselines.items():
                    variant = selection.baseline_variants[series]
                    choice = NO_TARGET if chosen is None else int(chosen[variant, number])
                    yield row | {
                        "series": series,
                        "head": None,
                        "direction": None,
                        "variant": counts.baseline_variants[series][variant],
                        **describe_choice(recorded_input, choice, is_head=False),
                        "correct": float(p_correct[variant, number]),
                        "correct (held out)": None,
                    }


def _word_targets(link: GoldLink) -> list[int]:
    """The targets that are words, which a head can choose."""
    return [target for target in link.targets if target >= 0]


def _held_out(selection: HeadSelection, unit: int, is_correct: Array) -> float:
    """The proportion of splits in which the candidate selected on the other half than the unit's is correct."""
    fit = selection.fit
    candidates = np.where(fit.halves[:, unit], fit.selected[:, 1], fit.selected[:, 0])
    return float(is_correct[candidates].mean())


def input_name(recorded_input: RecordedInput) -> str:
    """The id of an input's first sentence, or the number of its example from 1; further inputs have their number."""
    name = recorded_input.text.segments[0].id or str(recorded_input.example_index + 1)
    if recorded_input.input_index or recorded_input.window_index:
        name += f"/{recorded_input.input_index + 1}.{recorded_input.window_index + 1}"
    return name


def input_text(recorded_input: RecordedInput) -> str:
    """The texts of an input's segments."""
    return " | ".join(segment.text for segment in recorded_input.text.segments)


def describe_link(recorded_input: RecordedInput, link: GoldLink) -> Answer:
    """The words of a link; the item is the input, then the numbers of the word and of its gold words from 1."""
    words, targets = recorded_input.text.words, ",".join(str(target + 1) for target in link.targets)
    return {
        "item": f"{input_name(recorded_input)}:{link.source + 1}-{targets}",
        "text": input_text(recorded_input),
        "word": words[link.source],
        "gold": " | ".join("root" if target == ROOT else words[target] for target in link.targets),
    }


def describe_choice(recorded_input: RecordedInput, word: int, *, is_head: bool) -> Answer:
    """The chosen word and its number from 1; a head that chooses no word has -1, as has a baseline the root."""
    if word < ROOT or (is_head and word < 0):
        return {"prediction": "", "predicted word": None}
    return {"prediction": "root" if word == ROOT else recorded_input.text.words[word], "predicted word": word + 1}
