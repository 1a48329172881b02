"""Semantic roles: which heads link a predicate to its arguments (Kovaleva et al. 2019, section 4.2.1)?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from bertology.analyses.declaration import Sites, analysis
from bertology.analyses.head_grids import UNIFORM_ATTENTION, UNTRAINED_MODEL, label_means, uniform_baseline
from bertology.analyses.head_selection.gold_links import FIXED_OFFSET, GoldLink, count_links
from bertology.analyses.head_selection.selection import selection_table
from bertology.analyses.heads.semantic_roles.argument_pairs import (
    DIRECTIONS,
    SAME_DISTANCE,
    ArgumentFilter,
    is_core,
    role_attention_site,
    selected_arguments,
)
from bertology.analyses.label_criteria import OTHER, ROLE_WEIGHT, WORD_CHOICE, HeadLabelling
from bertology.corpus.sentence import Sentence, Span
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.recording.recording import Recording
from bertology.recording.sites import strongest_word_site
from bertology.results.shapes import HeadGrid, Table

SemanticRolesView = Literal["heads", "roles"]
ALL_ROLES, CORE_ROLES = "all roles", "core roles"
LINK_DIRECTIONS = ("role to predicate", "predicate to role")


def role_links(recorded_input: RecordedInput, role_filter: ArgumentFilter) -> list[GoldLink]:
    """One link per word and role, from the root of the argument to its predicates."""
    predicates_by_role: dict[tuple[int, str], set[int]] = {}
    start = 0
    for segment in recorded_input.text.segments:
        for frame, arguments in selected_arguments(segment, role_filter):
            for argument in arguments:
                word = start + _span_root(segment, argument)
                predicates_by_role.setdefault((word, argument.label), set()).add(start + frame.predicate)
        start += len(segment)
    links: list[GoldLink] = []
    for (word, role), predicates in predicates_by_role.items():
        targets = tuple(sorted(predicates - {word}))
        if targets:
            labels = (ALL_ROLES, *([CORE_ROLES] if is_core(role) else []), role)
            links.append(GoldLink(word, targets, labels, word))
    return links


def _span_root(sentence: Sentence, span: Span) -> int:
    """The word of a span whose governor is outside the span; the last word if there is no tree."""
    inside = range(span.start, span.end)
    roots = [word for word in inside if sentence.governors is not None and sentence.governors[word] not in inside]
    return roots[0] if roots else span.end - 1


def _sites(options: Mapping[str, Any]) -> Sites:
    if options["show"] == "roles":
        return (strongest_word_site(),)
    return (role_attention_site(options["role_filter"], options["legacy"]),)


@analysis(
    question="Which heads link a predicate to its semantic roles?",
    special_tokens="Special tokens: excluded as sources and targets. Attention weights are not renormalised.",
    citations=("kovaleva2019", "clark2019"),
    sites=_sites,
    annotations=("frames",),
    version=4,
    answers=("roles",),
    labels_heads=HeadLabelling(rank=4, criteria={**dict.fromkeys(DIRECTIONS, ROLE_WEIGHT), OTHER: WORD_CHOICE}),
)
def semantic_roles(
    recording: Recording,
    randomised: Recording | None,
    *,
    show: Annotated[
        SemanticRolesView,
        "`heads` (attention between predicate and role, for every head) or `roles` (best head per role).",
    ] = "heads",
    role_filter: Annotated[
        ArgumentFilter,
        "`distant`: roles more than two words from the predicate; `paper`: also only short sentences with one "
        "predicate and a core role; `all`.",
    ] = "distant",
    legacy: Annotated[
        bool, "Reproduce the released code: pair the first tokens of role and predicate, the second ones and so on."
    ] = False,
    min_examples: Annotated[int, "Minimum number of examples for a role to be scored."] = 20,
    seed: Annotated[int, "Random seed (splits into halves, bootstrap)."] = 0,
) -> HeadGrid | Table:
    """Highest attention weight from a token of a role to a token of its predicate: 0 none, 1 all of its attention.

    For each predicate the highest weight of any such pair, in both directions; averaged over predicates, then over
    sentences. Kovaleva et al. measure only from role to predicate, and their code pairs the two lists of tokens one by
    one (--legacy) where the paper says all pairs. They use the exemplars of FrameNet; any corpus with predicates and
    roles works here. The highest of several weights is high by chance: `same-distance pairs` are the same pairs shifted
    by one to four tokens along the sentence, which a head that depends only on distance would score as high.

    With --show roles: the proportion of words in a role from which the predicate receives the most attention of all
    words (or is the word that attends most to them); the head of each role is selected on one half of the sentences and
    evaluated on the other, over many random halves; see heads/dependency.
    """
    if show == "roles":
        return _build_table(recording, randomised, role_filter, min_examples, seed)
    site = role_attention_site(role_filter, legacy)
    means = label_means(recording.stack(site), site, seed)
    measures = {name: means[name] for name in DIRECTIONS}
    if not measures[DIRECTIONS[0]].n.any():
        raise _no_links_refusal(recording, role_filter)
    uniform = label_means(uniform_baseline(recording, site), site, seed)
    baselines: dict[str, dict[str, Estimates]] = {
        UNIFORM_ATTENTION: {name: uniform[name][:, None].broadcast_to(measures[name].shape) for name in DIRECTIONS},
        SAME_DISTANCE: {name: means[f"{name}, {SAME_DISTANCE}"] for name in DIRECTIONS},
    }
    if randomised is not None:
        untrained = label_means(randomised.stack(site), site, seed)
        baselines[UNTRAINED_MODEL] = {name: untrained[name] for name in DIRECTIONS}
    units = dict.fromkeys(DIRECTIONS, "attention weight, 0 to 1")
    return HeadGrid(measures=measures, baselines=baselines, units=units)


def _build_table(
    recording: Recording, randomised: Recording | None, role_filter: ArgumentFilter, min_examples: int, seed: int
) -> Table:
    site = strongest_word_site()

    def extract_links(recorded_input: RecordedInput) -> list[GoldLink]:
        return role_links(recorded_input, role_filter)

    counts = count_links(recording, site, extract_links, directions=LINK_DIRECTIONS, labels=(ALL_ROLES, CORE_ROLES))
    if not counts.total.any():
        raise _no_links_refusal(recording, role_filter)
    untrained = (
        None
        if randomised is None
        else count_links(randomised, site, extract_links, directions=LINK_DIRECTIONS, labels=counts.labels)
    )
    return selection_table(counts, untrained, baseline=FIXED_OFFSET, min_examples=min_examples, seed=seed)


def _no_links_refusal(recording: Recording, role_filter: ArgumentFilter) -> Refusal:
    return Refusal(
        f"No predicate of {recording.corpus.name} has a role that passes --role-filter {role_filter}",
        "a predicate and a role with separate tokens",
        "Use --role-filter all, or a corpus with longer sentences",
    )
