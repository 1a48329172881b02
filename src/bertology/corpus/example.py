"""Examples: sentences, or several texts that belong together, and the model inputs that they form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from bertology.corpus.sentence import Sentence

ExampleKind = Literal["sentence", "pair", "question", "choice", "minimal_pair"]
NO_FACTORS: Mapping[str, str] = MappingProxyType({})
NO_LABELS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence, or several texts that belong together.

    | kind | segments | model input |
    |---|---|---|
    | sentence | text | text |
    | pair | first, second | first + second |
    | question | question, passage | question + passage |
    | choice | passage, question, option, option, ... | one input per option: passage + question and option |
    | minimal_pair | acceptable, unacceptable | two inputs |

    `label` is the gold label: a class, a score, or the index of the correct option, always as text. `source` names the
    file, split or article that the example comes from. `factors` are the levels of an experimental design, such as
    `condition` or `attractors`, by the name of the factor. `labels` are all labels of the example by the names that the
    source gives them, such as the columns of a table; `Corpus.with_label` chooses one.
    """

    segments: tuple[Sentence, ...]
    kind: ExampleKind = "sentence"
    label: str | None = None
    id: str = ""
    source: str = ""
    factors: Mapping[str, str] = field(default_factory=lambda: NO_FACTORS)
    labels: Mapping[str, str] = field(default_factory=lambda: NO_LABELS)

    @property
    def text_inputs(self) -> tuple[TextInput, ...]:
        """The model inputs of this example, in order."""
        match self.kind:
            case "sentence":
                return (TextInput((self.segments[0],)),)
            case "pair" | "question":
                return (TextInput(self.segments),)
            case "minimal_pair":
                return tuple(TextInput((segment,)) for segment in self.segments)
            case "choice":
                passage, question, *options = self.segments
                return tuple(TextInput((passage, concatenate_segments((question, option)))) for option in options)


@dataclass(frozen=True, slots=True)
class TextInput:
    """One or two texts that form one model input."""

    segments: tuple[Sentence, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The words of all segments in order: the word axis of a recording."""
        if len(self.segments) == 1:
            return self.segments[0].words
        return tuple(word for segment in self.segments for word in segment.words)


@dataclass(frozen=True, slots=True)
class SkippedExample:
    """Input that was skipped or changed: `reason` is the short text it is counted under, `location` file and line."""

    reason: str
    location: str


def concatenate_segments(segments: Sequence[Sentence]) -> Sentence:
    """Join texts with a space into one unannotated sentence."""
    words = tuple(word for segment in segments for word in segment.words)
    offsets: list[tuple[int, int]] = []
    position = 0
    for segment in segments:
        offsets.extend((start + position, end + position) for start, end in segment.offsets)
        position += len(segment.text) + 1
    return Sentence(words, " ".join(segment.text for segment in segments), tuple(offsets))
