"""The concatenation test of Reif et al.: append a sentence and see how near a word stays to its sense (reif2019)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.probing.dataset import WORD_SITE
from bertology.analyses.word_senses.occurrences import SenseSplits, WordOccurrences
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example, concatenate_segments
from bertology.corpus.sentence import Sentence
from bertology.encoder.encoder import Encoder
from bertology.numerics.nearest_neighbours import FloatArray, IndexArray, centroids, cosines
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record
from bertology.recording.recording import Recording

AppendedSentence = Literal["other sense", "same sense", "another word"]
APPENDED_SENTENCES: tuple[AppendedSentence, ...] = ("other sense", "same sense", "another word")


@dataclass(frozen=True)
class SentenceConcatenation:
    """Test occurrences, the opposite sense of each, and the occurrences whose sentences are appended."""

    sense_splits: SenseSplits
    test_indices: IndexArray
    opposite_senses: NDArray[Any]
    appended: Mapping[AppendedSentence, IndexArray]

    @property
    def sentences(self) -> NDArray[np.int64]:
        """(test,) the sentence of each occurrence."""
        return self.sense_splits.test.examples.input_index[self.test_indices]


def concatenation_test(sense_splits: SenseSplits, sample_size: int, seed: int) -> SentenceConcatenation:
    """Sample occurrences of words with at least two senses in training, and sentences to append to them.

    Appended sentences come from other documents: one with another sense of the word, one with the same sense, and one
    without the word. Occurrences that lack one of the three are left out.
    """
    generator = np.random.default_rng([seed, 29])
    test, train = sense_splits.test, sense_splits.train
    train_split, test_split = sense_splits.splits[0]
    train_senses = set(zip(train.lemmas[train_split], train.senses[train_split], strict=True))
    rows: list[tuple[int, str, dict[AppendedSentence, int]]] = []
    for index in generator.permutation(test_split).tolist():
        if (test.lemmas[index], test.senses[index]) not in train_senses:
            continue
        candidates = _appendable_indices(test, index, train_senses)
        if all(len(indices) for indices in candidates.values()) and len(rows) < sample_size:
            appended: dict[AppendedSentence, int] = {
                name: int(generator.choice(indices)) for name, indices in candidates.items()
            }
            rows.append((index, str(test.senses[appended["other sense"]]), appended))
    return SentenceConcatenation(
        sense_splits,
        np.array([index for index, _, _ in rows], np.intp),
        np.array([sense for _, sense, _ in rows], np.object_),
        {name: np.array([appended[name] for _, _, appended in rows], np.intp) for name in APPENDED_SENTENCES},
    )


def _appendable_indices(
    test: WordOccurrences, index: int, train_senses: set[tuple[Any, Any]]
) -> dict[AppendedSentence, IndexArray]:
    other_document = test.documents != test.documents[index]
    same_lemma = test.lemmas == test.lemmas[index]
    same_sense = test.senses == test.senses[index]
    in_train = np.array([pair in train_senses for pair in zip(test.lemmas, test.senses, strict=True)], np.bool_)
    return {
        "other sense": np.flatnonzero(other_document & same_lemma & ~same_sense & in_train),
        "same sense": np.flatnonzero(other_document & same_lemma & same_sense),
        "another word": np.flatnonzero(other_document & ~same_lemma),
    }


def single_sentence_states(concatenation: SentenceConcatenation) -> NDArray[Any]:
    """(layer, test, width) states of the words in their original sentences."""
    return concatenation.sense_splits.test.examples.features[:, concatenation.test_indices]


def concatenated_states(
    concatenation: SentenceConcatenation, name: AppendedSentence, recording: Recording, encoder: Encoder
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """(layer, test, width) states of the words with a sentence appended, and which inputs fit the model.

    The two sentences form one segment, with a space between them.
    """
    test = concatenation.sense_splits.test
    pairs = zip(concatenation.test_indices, concatenation.appended[name], strict=True)
    examples = tuple(
        Example((concatenate_segments((_sentence(test, index), _sentence(test, appended))),), id=str(number))
        for number, (index, appended) in enumerate(pairs)
    )
    config = replace(RecordingConfig(**recording.config), overflow="skip")
    recorded = record(encoder, Corpus(examples, name=f"joined to {name}"), (WORD_SITE,), config=config, max_hours=None)
    layers, _, width = test.examples.features.shape
    states = np.zeros((layers, len(examples), width), np.float32)
    fits = np.zeros(len(examples), np.bool_)
    for recorded_input, words in zip(recorded.inputs, recorded[WORD_SITE], strict=True):
        row = recorded_input.example_index
        states[:, row] = words[:, test.word_index[concatenation.test_indices[row]]]
        fits[row] = True
    return states, fits


def _sentence(test: WordOccurrences, index: int) -> Sentence:
    return concatenate_segments(test.examples.inputs[test.examples.input_index[index]].text.segments)


def centroid_cosines(
    concatenation: SentenceConcatenation, vectors: NDArray[Any], senses: NDArray[Any] | None = None
) -> tuple[FloatArray, FloatArray]:
    """(layer, test) cosines with the training centroids of the word's sense and of the opposite sense."""
    train, test = concatenation.sense_splits.train, concatenation.sense_splits.test
    train_split = concatenation.sense_splits.splits[0][0]
    train_senses = (train.senses if senses is None else senses)[train_split]
    similarities = np.full((2, len(vectors), len(concatenation.test_indices)), np.nan)
    for row, index in enumerate(concatenation.test_indices.tolist()):
        pair = (test.senses[index], concatenation.opposite_senses[row])
        same_lemma = train.lemmas[train_split] == test.lemmas[index]
        names = train_senses[same_lemma]
        classes = np.select([names == sense for sense in pair], [0, 1], default=2)
        means = centroids(train.examples.features[:, train_split[same_lemma]], classes, 2)
        similarities[:, :, row] = cosines(vectors[:, row, None], means)[:, 0].T
    return similarities[0], similarities[1]
