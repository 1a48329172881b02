"""`token`: one tag for each word, read at its first piece; names (BIO tags) are judged whole."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from bertology.corpus.bio import is_tag
from bertology.corpus.corpus import Item
from bertology.encoder.encoder import Output
from bertology.encoder.task_heads import HeadName
from bertology.finetuning.examples import UNLABELLED, Padded, Seen, Tokenise, tagged
from bertology.finetuning.learner import Learner
from bertology.finetuning.metrics import Counts, Scores, count_names, count_same, estimate, macro_f1_and_mcc

Answer = Sequence[str]


@dataclass(frozen=True)
class Tags:
    """A tag for each word, taken from a layer of annotation."""

    labels: tuple[str, ...]
    layer: str
    name: str = "token"
    head: HeadName = "token"

    @property
    def spans(self) -> bool:
        """Whether the tags mark spans: O, and B- or I- before a label."""
        return "O" in self.labels and len(self.labels) > 1 and all(map(is_tag, self.labels))

    @property
    def measure(self) -> str:
        """The score that decides."""
        return "span F1" if self.spans else "accuracy"

    def see(self, items: Sequence[Item], tokenise: Tokenise, *, longest: int) -> Seen:
        """Sentences that are too long, or have a word that the tokeniser drops, are left out."""
        return tagged(items, tokenise, self.labels, longest=longest, layer=self.layer)

    def loss(self, learner: Learner, batch: Padded) -> Tensor:
        """Cross-entropy of the tags at the first pieces."""
        logits = learner.run(batch.shown).logits["token"].float()
        labels = batch.labels.to(logits.device)
        return nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=UNLABELLED)

    def losses(self, output: Output, batch: Padded) -> Tensor:
        """The mean cross-entropy of the tags of each sentence; 0 for one without any."""
        logits = output.logits["token"].float()
        labels = batch.labels.to(logits.device)
        losses = nn.functional.cross_entropy(logits.transpose(1, 2), labels, ignore_index=UNLABELLED, reduction="none")
        return losses.sum(1) / (labels != UNLABELLED).sum(1).clamp(min=1)

    def answers(self, learner: Learner, seen: Seen) -> list[Answer]:
        """The likeliest tag of each word."""
        return self.read(learner.shown(seen.examples), seen)

    def read(self, shown: Iterable[tuple[Padded, Output]], seen: Seen) -> list[Answer]:
        """The likeliest tag of each word, from what came of each sentence."""
        found: list[Answer] = [()] * len(seen.items)
        for batch, output in shown:
            tags = output.logits["token"].argmax(-1).cpu().numpy()
            for row, place in enumerate(batch.places):
                found[place] = [self.labels[tag] for tag in tags[row, seen.examples[place].first_pieces]]
        return found

    def counts(self, items: Sequence[Item], answers: Sequence[Answer]) -> Counts:
        """Right names, or right tags."""
        return (count_names if self.spans else count_same)(self._gold(items), answers)

    def scores(self, items: Sequence[Item], answers: Sequence[Answer]) -> Scores:
        """F1 of names where the tags mark names; accuracy over all words and macro-F1 of the tags."""
        gold = self._gold(items)
        names = {"span F1": estimate(count_names(gold, answers))} if self.spans else {}
        others = {"accuracy": estimate(count_same(gold, answers)), **macro_f1_and_mcc(gold, answers)}
        return names | others

    def guesses(self, learnt: Sequence[Item], items: Sequence[Item]) -> Mapping[str, list[Answer]]:
        """The commonest tag of all, and of each word, as those learnt from have it."""
        usual = Counter(tag for tags in self._gold(learnt) for tag in tags).most_common(1)[0][0]
        seen: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for item, tags in zip(learnt, self._gold(learnt), strict=True):
            for word, tag in zip(item.parts[0].words, tags, strict=True):
                seen[word.lower()][tag] += 1
        known = {word: tags.most_common(1)[0][0] for word, tags in seen.items()}
        sentences = [item.parts[0].words for item in items]
        return {
            "majority": [[usual] * len(words) for words in sentences],
            "majority of the word": [[known.get(word.lower(), usual) for word in words] for words in sentences],
        }

    def _gold(self, items: Sequence[Item]) -> list[Answer]:
        return [getattr(item.parts[0], self.layer) for item in items]


def label_order(tags: set[str]) -> tuple[str, ...]:
    """The tags in order, O first."""
    return tuple(sorted(tags, key=lambda tag: (tag != "O", tag)))
