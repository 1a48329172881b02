"""How strong a score must be for a result to label a head: the thresholds of all head labels.

Published practice is followed where there is one. Clark et al. (2019) count heads that put more than half of their
attention on the next or previous token. Voita et al. (2019) call a head positional if its strongest target is at one
offset for nine in ten words, and syntactic if it is 10 points above the best fixed offset. The two heads that Kovaleva
et al. (2019) report for semantic roles reach 0.2. That a relation, an antecedent or the rarest word must be found in
half of the cases as well, and the share of attention to related, predictive and delimiting tokens, are our choices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bertology.estimates.estimate import Estimate

OTHER = ""
"""The key of the criterion of all labels that have none of their own."""
MIN_N = 5
"""The fewest sentences or texts, as of a paired test: with fewer none can be significant."""
MIN_CHOSEN = 0.5
"""The fewest splits, as a proportion, in which a head must be the selected one."""


@dataclass(frozen=True)
class LabelCriterion:
    """The least score of a label, and how far it must exceed the highest baseline: by a margin, or by a factor."""

    min_score: float
    min_margin: float = 0.0
    min_ratio: float = 1.0

    def is_met(self, score: float, baseline: float) -> bool:
        """Whether a score is strong enough, given the highest of its baselines."""
        return score >= max(self.min_score, baseline + self.min_margin, baseline * self.min_ratio)

    def __str__(self) -> str:
        margin = f" and {self.min_margin:g} above the highest baseline" if self.min_margin else ""
        ratio = f" and {self.min_ratio:g} times the highest baseline" if self.min_ratio > 1 else ""
        return f"at least {self.min_score:g}{margin}{ratio}"


POSITION = LabelCriterion(0.9, min_margin=0.1)
"""A word at one offset receives most attention (Voita et al. 2019, section 5.1)."""
WORD_CHOICE = LabelCriterion(0.5, min_margin=0.1)
"""The right word receives most attention: a governor, an antecedent, the rarest word (Voita et al., section 5.2)."""
NEIGHBOUR_SHARE = LabelCriterion(0.5, min_ratio=2)
"""Share of attention to the next or the previous word (Clark et al. 2019, section 3.1)."""
DELIMITER_SHARE = LabelCriterion(0.6, min_ratio=2)
CONTENT_SHARE = LabelCriterion(0.3, min_ratio=2)
"""Share of attention to words that are few in a sentence, such as those with the same lemma."""
ROLE_WEIGHT = LabelCriterion(0.2, min_ratio=2)
"""The highest weight between predicate and role (Kovaleva et al. 2019, section 4.2.1)."""


@dataclass(frozen=True)
class HeadLabelling:
    """The declaration of an analysis that its results label heads.

    `rank` orders the labels of one head from different analyses (1 first). `criteria` are by kind of label: a measure,
    a function or its kind; `OTHER` is for the rest. Baselines in `ignored_baselines` need not be exceeded.
    """

    rank: int
    criteria: Mapping[str, LabelCriterion]
    ignored_baselines: tuple[str, ...] = ()

    def is_met(self, kinds: Iterable[str], score: Estimate, baselines: Mapping[str, Estimate]) -> bool:
        """Whether a score is strong enough for a label of the first known kind, and clearly above its baselines."""
        criterion = next((self.criteria[kind] for kind in (*kinds, OTHER) if kind in self.criteria), None)
        compared = [baseline for name, baseline in baselines.items() if name not in self.ignored_baselines]
        return (
            criterion is not None
            and bool(compared)
            and score.n >= MIN_N
            and all(score.clearly_above(baseline) for baseline in compared)
            and criterion.is_met(score.value, max(baseline.value for baseline in compared))
        )

    @property
    def summary(self) -> str:
        """The criterion of each kind of label."""
        kinds: dict[LabelCriterion, list[str]] = {}
        for kind, criterion in self.criteria.items():
            kinds.setdefault(criterion, []).append("others" if kind == OTHER else kind)
        if len(kinds) == 1:
            return str(*kinds)
        return "; ".join(f"{criterion} ({', '.join(names)})" for criterion, names in kinds.items())

    @property
    def description(self) -> str:
        """When a head is labelled, in two sentences."""
        ignored = f" (except: {', '.join(self.ignored_baselines)})" * bool(self.ignored_baselines)
        return (
            f"Heads are labelled in views and reports if the score is {self.summary}. Its interval must lie above "
            f"those of all baselines{ignored}, with n of at least {MIN_N}; a head that was selected for a row must "
            f"be the one selected in at least {MIN_CHOSEN:.0%} of the splits, and its p value significant."
        ).replace("%", " %")
