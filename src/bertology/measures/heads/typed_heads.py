"""Which heads have a function that Voita et al. (2019) name? For analyses that ask what becomes of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.finetuning.division import ordered
from bertology.measures.heads.head_functions import (
    Thresholds,
    frequencies,
    function_questions,
    functions_of,
    kind_of,
)
from bertology.measures.heads.word_questions import tally
from bertology.recording.policy import Policy
from bertology.recording.recorder import record
from bertology.recording.word_sites import strongest_word

FREQUENT, MINIMUM = 500, 20
MOST = 200
"""Sentences that heads are typed on: enough for positions and frequent relations."""
USUAL = "english"


def typed_heads(encoder: Encoder, corpus: Corpus, named: str, *, seed: int) -> dict[str, NDArray[np.bool_]]:
    """(layer, head) which heads are positional, syntactic and of rare words, of those kinds that there are.

    By the corpus of that name; without one by the corpus given, or the embedded treebank if that has no trees.
    """
    has_trees = corpus.layers["heads"] and corpus.layers["relations"]
    typed = corpus_named(named or USUAL) if named or not has_trees else corpus
    typed.require("heads", "relations", purpose="what heads are for")
    shown = replace(typed, items=tuple(ordered(typed.items)[:MOST]))
    site = strongest_word()
    recording = record(encoder, shown, [site], policy=Policy(long="truncate"))
    counts, frequent = frequencies([part.words for part in typed.sentences], FREQUENT)
    counted = tally(recording, site, lambda entry: function_questions(entry, counts, frequent), directions=("",))
    found: dict[str, NDArray[np.bool_]] = {}
    for one in functions_of(counted, Thresholds(), minimum=MINIMUM, seed=seed):
        if one.confirmed:
            heads = found.setdefault(kind_of(one.label), np.zeros((encoder.layers, encoder.heads), np.bool_))
            heads[one.head] = True
    return dict(sorted(found.items()))
