"""All generators: distinct examples, fixed content for a seed, exact sizes, refusals, names on the command line."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.corpus.checks import assert_offsets_match, assert_valid

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.generate import Stratum, allocate, balance_strata, generate, generators
from bertology.corpus.read import list_corpora, load_corpus
from bertology.corpus.sample_spaces import map_space, sample_distinct, uniform
from bertology.errors import Refusal

NAMES = sorted(generators())
OPTIONS: dict[str, dict[str, Any]] = {
    "main_auxiliary": {"split": "generalisation"},
    "minimal_pairs": {"paradigm": "binding"},
    "nth_token": {"n": "3"},
    "reflexives": {"feature": "number"},
    "subject_noun": {"clitic": "apart"},
}
SIZES = {
    "agreement": 143_506_350,
    "main_auxiliary": 675_710_105_287_375_534_154_456_881_036_080,
    "minimal_pairs": 5_130_545_088,
    "nli": 1_025_887_680,
    "nth_token": 750_788_926_635_465_378_017_280_576_500_607_811_584,
    "reading_comprehension": 23_520_047_638_619_750_400_000,
    "reflexives": 19_871_143_344,
    "subject_noun": 2_262_665_158_173_900_153_756_545_723_165_934_184_449_030_068_106_535_814_540_640,
}
FINGERPRINTS = {
    "agreement": "ffae87c881034a4ac02476a3462f830d",
    "main_auxiliary": "a344088c02ccabec7917bd13974b89c8",
    "minimal_pairs": "af26e6eaf551cc30ac6c126d69d44d58",
    "nli": "2b4de9d937a86d552a5d5b5d5155f734",
    "nth_token": "0c9d4f0be698ddb503e69db9f6531232",
    "reading_comprehension": "c372d0bd514f335f0e25188b8bb4f838",
    "reflexives": "fb627ace1ef218ca8d4134808e2c0faf",
    "subject_noun": "60f142d10a8c5a71434e7aefa4a9074b",
}


def texts(example: Example) -> tuple[str, ...]:
    return tuple(segment.text for segment in example.segments)


@pytest.fixture(scope="module", params=NAMES)
def corpus(request: pytest.FixtureRequest) -> Corpus:
    return generate(request.param, size=200, seed=1)


def generator_name(corpus: Corpus) -> str:
    return corpus.name.removeprefix("generated:").split("@")[0]


def test_the_documented_generators_exist() -> None:
    assert set(NAMES) == set(SIZES)


def test_examples_are_valid_and_distinct(corpus: Corpus) -> None:
    assert_valid(corpus)
    assert_offsets_match(corpus)
    assert len({texts(example) for example in corpus}) == len({example.id for example in corpus}) == len(corpus) == 200
    assert not corpus.skipped and corpus.format == "generated"


def test_every_example_has_factors_and_no_source(corpus: Corpus) -> None:
    names = {tuple(example.factors) for example in corpus}
    assert all(names) and len(names) <= 2
    assert not any(example.source for example in corpus)


def test_the_seed_determines_the_examples(corpus: Corpus) -> None:
    name = generator_name(corpus)
    assert generate(name, size=200, seed=1).examples == corpus.examples
    other = generate(name, size=200, seed=2)
    assert len({texts(example) for example in other} & {texts(example) for example in corpus}) < 50


@pytest.mark.parametrize("name", NAMES)
def test_the_content_for_a_seed_never_changes(name: str) -> None:
    """Another fingerprint means that results on these stimuli are not comparable with earlier ones."""
    assert generate(name, size=20, seed=7).fingerprint == FINGERPRINTS[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_size_above_the_number_of_distinct_examples_is_refused(name: str) -> None:
    assert sum(stratum.space.size for stratum in generators()[name].strata()) == SIZES[name]
    for size in (SIZES[name] + 1, 0):
        with pytest.raises(Refusal, match=f"has {SIZES[name]} different"):
            generate(name, size=size)


@pytest.mark.parametrize("name", NAMES)
def test_different_indices_are_different_texts(name: str) -> None:
    rng = Random(5)
    for stratum in generators()[name].strata():
        count = min(12, stratum.space.size)
        assert len({texts(example) for example in sample_distinct(stratum.space, count, rng)}) == count


def test_all_examples_of_a_stratum_can_be_sampled() -> None:
    strata = [s for s in generators()["agreement"].strata() if s.factors["structure"] == "plain"]
    all_texts = [texts(example) for s in strata for example in sample_distinct(s.space, s.space.size, Random(0))]
    assert len(all_texts) == len(set(all_texts)) == 2 * 5 * 13 * (4 + 1) * 9


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_options_change_the_examples(name: str) -> None:
    changed = generate(name, size=50, **OPTIONS[name])
    assert_valid(changed)
    assert changed.fingerprint != generate(name, size=50).fingerprint
    assert next(iter(OPTIONS[name].values())) in changed.name


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_a_wrong_option_or_value_is_refused(name: str) -> None:
    with pytest.raises(Refusal, match="no option of the generator"):
        generate(name, size=5, colour="red")
    nonsense: dict[str, Any] = dict.fromkeys(OPTIONS[name], "nonsense")
    with pytest.raises(Refusal, match="nonsense"):
        generate(name, size=5, **nonsense)


def test_generated_corpora_are_loaded_by_name() -> None:
    corpus = load_corpus("generated:agreement@7:30", limit=10)
    assert corpus.examples == generate("agreement", size=30, seed=7).examples[:10]
    assert len(load_corpus("generated:agreement")) == 1000
    assert load_corpus("generated:nth_token:8", n="4").examples == generate("nth_token", size=8, n=4).examples
    assert load_corpus("generated:nth_token:8,n=4").examples == generate("nth_token", size=8, n=4).examples
    corpus = load_corpus("generated:subject_noun@3:20,first=known")
    assert corpus.name == "generated:subject_noun@3:20,first=known"
    assert load_corpus(corpus.name).examples == corpus.examples
    assert {f"generated:{name}" for name in NAMES} <= {row["name"] for row in list_corpora()}


@pytest.mark.parametrize(
    "name",
    [
        "generated:agrement",
        "generated:",
        "generated:nli@x",
        "generated:nli:1:2",
        "generated:nli,x",
        "generated:nli:" + "9" * 30,
    ],
)
def test_a_wrong_name_is_refused(name: str) -> None:
    with pytest.raises(Refusal, match="generat"):
        load_corpus(name)


def test_a_missing_prefix_is_suggested() -> None:
    with pytest.raises(Refusal, match="Did you mean 'generated:agreement'"):
        load_corpus("agreement")


def make_stratum(size: int, weight: int = 1) -> Stratum:
    empty = generate("agreement", size=1)[0]
    return Stratum({}, map_space(uniform(range(size)), lambda _: empty), weight)


@pytest.mark.parametrize("size", [0, 1, 5, 12, 40, 111])
def test_allocation_respects_the_sizes_of_strata(size: int) -> None:
    strata = [make_stratum(1, 5), make_stratum(100, 1), make_stratum(10, 3)]
    counts = allocate(strata, size)
    assert sum(counts) == size
    assert all(count <= s.space.size for count, s in zip(counts, strata, strict=True))


def test_allocation_is_proportional_to_weights() -> None:
    assert allocate([make_stratum(100, 2), make_stratum(100, 1), make_stratum(100, 1)], 40) == [20, 10, 10]
    assert allocate([make_stratum(100)] * 3, 7) in ([2, 2, 3], [2, 3, 2], [3, 2, 2])


def test_balanced_groups_have_equal_weight() -> None:
    strata = balance_strata([make_stratum(9)], [make_stratum(9), make_stratum(9, 2)])
    assert [s.weight for s in strata] == [3, 1, 2]
