"""What does each layer know about a word: its part of speech, relation, entity, role (liu2019, hewitt2019control)?"""

from __future__ import annotations

from typing import Annotated

from bertology.analyses.declaration import analysis
from bertology.encoder.encoder import Encoder
from bertology.measures.division import Division, random_form
from bertology.measures.probes.options import Seed, Seeds, Share, Train, TrainLimit
from bertology.measures.probes.probe_material import WORD_SITE, Case, Cases, Task, divided, task_of
from bertology.measures.probes.probe_report import probe_curve
from bertology.measures.probes.probe_scores import setting_of
from bertology.measures.probes.word_labels import WORD_LABELS, Label
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.results.shapes import LayerCurve


def word_cases(label: Label) -> Cases:
    """The words of an entry with their labels; a word's type is its form in lower case."""

    def cases(entry: Entry) -> list[Case]:
        found: list[Case] = []
        start = 0
        for part in entry.input.parts:
            for word, name in enumerate(WORD_LABELS[label].of(part)):
                if name is not None:
                    found.append(Case(name, part.words[word].lower(), ((start + word, start + word + 1),)))
            start += len(part)
        return found

    return cases


def word_task(
    recording: Recording, encoder: Encoder | None, division: Division, label: Label, minimum: int, *, purpose: str
) -> Task:
    """The words to train on and to test on, refused where the corpus is not annotated so."""
    layer, asked = WORD_LABELS[label].layer, f"{purpose} --label {label}"
    recording.corpus.require(layer, purpose=asked)
    parts = divided(recording, encoder, division, word_cases(label), purpose=asked, layers=(layer,))
    return task_of(*parts, minimum, purpose=asked, not_drawn=division.not_drawn(recording))


@analysis(
    question="What does each layer know about a word?",
    special="seen by the model; only words are probed, each by the mean of its pieces",
    cites=("liu2019", "hewitt2019control", "voita2020"),
    sites=(WORD_SITE,),
    version=3,
)
def token(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    label: Annotated[Label, "what to tell of a word"] = "upos",
    probe: Annotated[str, "linear, rank:N, mlp:N or mlp:N:N, with N units"] = "linear",
    minimum: Annotated[int, "a label counts from this many words in training"] = 10,
    train: Train = "",
    train_limit: TrainLimit = 0,
    share: Share = 0.7,
    seeds: Seeds = 3,
    seed: Seed = 0,
) -> LayerCurve:
    """Share of words whose label a probe of one layer tells right, 0 to 1, with what the probe may have by itself.

    A probe is a classifier on the vector of a word at one layer, the mean of its pieces (Liu et al. take the last
    piece, Hewitt & Liang the mean). Linear probes solve the penalised objective to the end, with four penalties; their
    weights are mixed by how likely each makes the labels of held-out documents. Train, held-out and test are different
    documents where documents are known, else different sentences. All layers, seeds and labellings are fitted together.
    Labels: `relation` without its subtype; `entity`, `chunk`, `role` and `mention` are those of the shortest span that
    a word lies in, O outside.

    `selectivity` is the accuracy less that of the same probe on a control task, in which every form of a word has one
    random label, drawn in the proportions of the labels in training, wherever it occurs; forms that training does not
    have can only be guessed, in both tasks. `compression` is by the online code (see probes/description_length).
    Baselines: the most frequent label; the most frequent label of the form; the model with random weights; control
    labels. Intervals of the first three are over test sentences and seeds, that of compression from the lowest seed to
    the highest.
    """
    setting = setting_of(probe, seeds, seed)
    division = Division(train, train_limit, share, seed)
    task = word_task(recording, encoder, division, label, minimum, purpose="probes/token")
    fresh = None
    if randomised is not None:
        fresh = word_task(randomised, random_form(encoder), division, label, minimum, purpose="probes/token")
    return probe_curve(task, fresh, setting, seed=seed, cases="words", type="word")
