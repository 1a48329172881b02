"""Do the nearest neighbours of a word in context have its sense, layer by layer (wiedemann2019)?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.measures.division import Division, random_form
from bertology.measures.meaning.sense_answers import (
    ACCURACY,
    BACKED,
    BACKED_ACCURACY,
    F1,
    MEASURES,
    SEVERAL,
    Answers,
    Fallback,
    Method,
    Rule,
    answers,
    scored,
)
from bertology.measures.meaning.sense_inventory import Named, fallback_named
from bertology.measures.meaning.sense_material import LAST, Divided, divided
from bertology.measures.probes.probe_material import WORD_SITE
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimates
from bertology.results.sampling import joined
from bertology.results.shapes import LayerCurve, Matrix

By = Literal["none", "pos", "lemma"]
NAME = "meaning/senses"
UNITS = {
    F1: "0 to 1, words that training lacks unanswered",
    ACCURACY: "share of occurrences, 0 to 1, back-offs included",
    SEVERAL: "share of those with two senses or more in training, 0 to 1",
    BACKED: "share of occurrences whose word training lacks, 0 to 1",
    BACKED_ACCURACY: "share of back-offs, 0 to 1",
}


@analysis(
    question="Do the nearest neighbours of a word in context have its sense?",
    special="seen by the model; a word is the mean of its own pieces",
    cites=("wiedemann2019", "reif2019"),
    sites=(WORD_SITE,),
    layers=("senses",),
)
def senses(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    k: Annotated[int, "how many neighbours vote"] = 1,
    rule: Annotated[Rule, "the nearest `neighbours` vote, or the nearest of the senses' `centroids` is taken"] = (
        "neighbours"
    ),
    clip: Annotated[bool, "no more neighbours than the rarest sense of the word has, as in the released code"] = True,
    same_pos: Annotated[bool, "only senses that the word has with the same part of speech in training"] = False,
    fallback: Annotated[
        Named, "the sense of a word that training lacks: none, the most frequent one of its name, or WordNet's first"
    ] = "most_frequent",
    lexicon: Annotated[str, "with --fallback wordnet: the lexicon of the package wn"] = "omw-en:1.4",
    by: Annotated[By, "all together (LayerCurve), or apart by part of speech or word (Matrix)"] = "none",
    train: Annotated[str, "a corpus with senses to learn from; empty: a part of the test corpus"] = "",
    train_limit: Annotated[int, "learn from the first N sentences of --train; 0 for all"] = 0,
    share: Annotated[float, "without --train: the share of the sentences to learn from, whole documents"] = 0.7,
    seeds: Annotated[int, "without --train: how many divisions into documents to learn from and to test"] = 5,
    seed: Annotated[int, "the first of these seeds, and that of the bootstrap"] = 0,
) -> LayerCurve | Matrix:
    """Share of words whose sense their nearest neighbours in training tell right, 0 to 1, by layer.

    The candidates are the senses that the word (its lemma) has in training, their vectors those of all words with that
    sense; the k with the highest cosine vote. `last four` has the last four layers end to end (Wiedemann et al., in
    BERT-large). Nothing is trained. Where vectors tie, they share the vote: if all are alike, as static vectors of
    one word are, the most frequent sense is told. Readers keep the first of several gold senses.

    - F1: words that training lacks get no answer, as in the released code; accuracy: they get the fallback's, which
      counts as wrong where it has none. Both say little where most words have one sense: see the third measure.
    - back-offs: how many words training lacks, and how often the fallback is right.

    Baselines: the most frequent sense in training (the first by name, where several are); a random one of the
    candidates; `best possible`: every sense that training has; `shuffled senses`: the senses of each word dealt anew
    before learning; `embedding layer`: layer 0, the word without its context but, in BERT, with its position; random
    weights. The most frequent sense of training is not always that of the test: with two senses as frequent, it comes
    out below one half. Intervals are over test sentences and divisions, n is the sentences with a word that counts.

    The paper feeds lemmas to the model and files training by form, testing by lemma; here the model sees the text and
    both go by lemma.
    """
    division = Division(train, train_limit, share, seed)
    method = Method(rule, k, clip, same_pos)
    own = divided(recording, encoder, division, seeds, purpose=NAME)
    fresh = None
    if randomised is not None:
        fresh = divided(randomised, random_form(encoder), division, seeds, purpose=NAME)
    asked = _Asked.of(own, fresh, method, fallback_named(fallback, lexicon), seed)
    return _curve(asked) if by == "none" else _matrix(asked, by)


@dataclass(frozen=True)
class _Asked:
    """The answers by the vectors of the model, by those of random weights, and after learning shuffled senses."""

    own: Divided
    fresh: Divided | None
    given: list[Answers]
    random: list[Answers]
    control: list[Answers]
    seed: int

    @classmethod
    def of(cls, own: Divided, fresh: Divided | None, method: Method, fallback: Fallback | None, seed: int) -> _Asked:
        """Everything answered once."""
        random = answers(fresh, method, fallback) if fresh is not None else []
        control = answers(own, method, fallback, shuffle=seed)
        return cls(own, fresh, answers(own, method, fallback), random, control, seed)

    def found(self, only: NDArray[np.bool_] | None = None) -> dict[str, dict[str, Estimates]]:
        """Each measure by view: of the model (under ""), and of every baseline."""
        given = scored(self.own, self.given, self.seed, only=only)
        given["shuffled senses"] = scored(self.own, self.control, self.seed, only=only)[""]
        views = len(self.own.tested.views)
        given["embedding layer"] = {name: one[0].everywhere((views,)) for name, one in given[""].items()}
        if self.fresh is not None:
            given["random weights"] = scored(self.fresh, self.random, self.seed, only=only)[""]
        return given


def _curve(asked: _Asked) -> LayerCurve:
    found, layers = asked.found(), len(asked.own.tested.views) - 1
    baselines = {name: {key: one[:layers] for key, one in measures.items()} for name, measures in found.items() if name}
    baselines[LAST] = {key: one[layers].everywhere((layers,)) for key, one in found[""].items()}
    units = UNITS | {ACCURACY: f"{UNITS[ACCURACY]} ({asked.own.sizes})"}
    return LayerCurve(measures={key: one[:layers] for key, one in found[""].items()}, baselines=baselines, units=units)


def _matrix(asked: _Asked, by: By) -> Matrix:
    tested = asked.own.tested
    labels = tested.pos if by == "pos" else tested.lemma
    counted = np.concatenate([second for _, second in asked.own.runs])
    columns = [str(name) for name in sorted(set(labels[counted].tolist()))]
    if columns == [""]:
        raise Refusal(
            "--by pos was given, and the corpus has no parts of speech", "a tagged corpus", "Leave --by out, or tag it"
        )
    parts = [asked.found(labels == name) for name in columns]

    def cells(name: str) -> dict[str, Estimates]:
        return {key: _turned(joined([part[name][key] for part in parts])) for key in MEASURES}

    return Matrix(
        measures=cells(""),
        baselines={name: cells(name) for name in parts[0] if name},
        units=UNITS,
        rows_named=tested.views,
        columns_named=tuple(name or "(none)" for name in columns),
    )


def _turned(some: Estimates) -> Estimates:
    """(view, column) from (column, view)."""
    return Estimates(value=some.value.T, low=some.low.T, high=some.high.T, n=some.n.T)
