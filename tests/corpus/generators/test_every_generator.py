"""What holds for every generator: unique items, the same for a seed, exact sizes, refusals, command-line names."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.corpus.checks import assert_surfaces, check

from bertology.corpus.builtin import corpus_named, describe
from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.factors import as_source, factors
from bertology.corpus.generate import Stratum, balanced, generate, generators, shares
from bertology.corpus.spaces import among, distinct, mapped
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
    "reading": 23_520_047_638_619_750_400_000,
    "reflexives": 19_871_143_344,
    "subject_noun": 2_262_665_158_173_900_153_756_545_723_165_934_184_449_030_068_106_535_814_540_640,
}
FINGERPRINTS = {
    "agreement": "ffae87c881034a4ac02476a3462f830d",
    "main_auxiliary": "a344088c02ccabec7917bd13974b89c8",
    "minimal_pairs": "af26e6eaf551cc30ac6c126d69d44d58",
    "nli": "2b4de9d937a86d552a5d5b5d5155f734",
    "nth_token": "0c9d4f0be698ddb503e69db9f6531232",
    "reading": "c372d0bd514f335f0e25188b8bb4f838",
    "reflexives": "fb627ace1ef218ca8d4134808e2c0faf",
    "subject_noun": "60f142d10a8c5a71434e7aefa4a9074b",
}


def texts(item: Item) -> tuple[str, ...]:
    return tuple(part.text for part in item.parts)


@pytest.fixture(scope="module", params=NAMES)
def corpus(request: pytest.FixtureRequest) -> Corpus:
    return generate(request.param, size=200, seed=1)


def name_of(corpus: Corpus) -> str:
    return corpus.name.removeprefix("generated:").split("@")[0]


def test_there_are_those_promised() -> None:
    assert set(NAMES) == set(SIZES)


def test_items_are_sound_and_no_two_alike(corpus: Corpus) -> None:
    check(corpus)
    assert_surfaces(corpus)
    assert len({texts(item) for item in corpus}) == len({item.id for item in corpus}) == len(corpus) == 200
    assert not corpus.skipped and corpus.format == "generated"


def test_factors_are_read_back_from_the_source(corpus: Corpus) -> None:
    names = {tuple(factors(item)) for item in corpus}
    assert all(names) and len(names) <= 2
    assert all(as_source(factors(item)) == item.source for item in corpus)


def test_a_seed_decides_everything(corpus: Corpus) -> None:
    name = name_of(corpus)
    assert generate(name, size=200, seed=1).items == corpus.items
    other = generate(name, size=200, seed=2)
    assert len({texts(item) for item in other} & {texts(item) for item in corpus}) < 50


@pytest.mark.parametrize("name", NAMES)
def test_the_content_for_a_seed_never_changes(name: str) -> None:
    """A new fingerprint here means that results on these stimuli are no longer comparable: change it knowingly."""
    assert generate(name, size=20, seed=7).fingerprint == FINGERPRINTS[name]


@pytest.mark.parametrize("name", NAMES)
def test_the_number_of_distinct_items_is_known_and_told(name: str) -> None:
    assert sum(stratum.space.size for stratum in generators()[name].strata()) == SIZES[name]
    for size in (SIZES[name] + 1, 0):
        with pytest.raises(Refusal, match=f"makes {SIZES[name]} different"):
            generate(name, size=size)


@pytest.mark.parametrize("name", NAMES)
def test_different_indices_are_different_texts(name: str) -> None:
    random = Random(5)
    for stratum in generators()[name].strata():
        count = min(12, stratum.space.size)
        assert len({texts(item) for item in distinct(stratum.space, count, random)}) == count


def test_a_stratum_gives_all_it_has() -> None:
    strata = [s for s in generators()["agreement"].strata() if s.factors["structure"] == "plain"]
    every = [texts(item) for s in strata for item in distinct(s.space, s.space.size, Random(0))]
    assert len(every) == len(set(every)) == 2 * 5 * 13 * (4 + 1) * 9


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_options_change_what_is_made(name: str) -> None:
    changed = generate(name, size=50, **OPTIONS[name])
    check(changed)
    assert changed.fingerprint != generate(name, size=50).fingerprint
    assert next(iter(OPTIONS[name].values())) in changed.name


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_a_wrong_option_or_value_is_refused(name: str) -> None:
    with pytest.raises(Refusal, match="no option of the generator"):
        generate(name, size=5, colour="red")
    nonsense: dict[str, Any] = dict.fromkeys(OPTIONS[name], "nonsense")
    with pytest.raises(Refusal, match="nonsense"):
        generate(name, size=5, **nonsense)


def test_the_command_line_names_them() -> None:
    corpus = corpus_named("generated:agreement@7:30", limit=10)
    assert corpus.items == generate("agreement", size=30, seed=7).items[:10]
    assert len(corpus_named("generated:agreement")) == 1000
    assert corpus_named("generated:nth_token:8", n="4").items == generate("nth_token", size=8, n=4).items
    assert corpus_named("generated:nth_token:8,n=4").items == generate("nth_token", size=8, n=4).items
    known = corpus_named("generated:subject_noun@3:20,first=known")
    assert known.name == "generated:subject_noun@3:20,first=known"  # what a corpus is called names it again
    assert corpus_named(known.name).items == known.items
    assert {f"generated:{name}" for name in NAMES} <= {row["name"] for row in describe()}


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
        corpus_named(name)


def test_a_name_without_its_prefix_is_suggested() -> None:
    with pytest.raises(Refusal, match="Did you mean 'generated:agreement'"):
        corpus_named("agreement")


def stratum(size: int, weight: int = 1) -> Stratum:
    empty = generate("agreement", size=1)[0]
    return Stratum({}, mapped(among(range(size)), lambda _: empty), weight)


@pytest.mark.parametrize("size", [0, 1, 5, 12, 40, 111])
def test_shares_follow_weight_and_room(size: int) -> None:
    strata = [stratum(1, 5), stratum(100, 1), stratum(10, 3)]
    given = shares(strata, size)
    assert sum(given) == size
    assert all(count <= s.space.size for count, s in zip(given, strata, strict=True))


def test_shares_are_in_proportion() -> None:
    assert shares([stratum(100, 2), stratum(100, 1), stratum(100, 1)], 40) == [20, 10, 10]
    assert shares([stratum(100)] * 3, 7) in ([2, 2, 3], [2, 3, 2], [3, 2, 2])


def test_balanced_groups_weigh_the_same() -> None:
    strata = balanced([stratum(9)], [stratum(9), stratum(9, 2)])
    assert [s.weight for s in strata] == [3, 1, 2]


def test_published_files_have_their_condition() -> None:
    item = generate("agreement", size=1)[0]
    for source, condition in {"agr.0": "A0", "agr.13": "A3", "agr.9": "A2", "refl.6": "R6"}.items():
        published = Item(item.parts, source=source)
        assert factors(published) == {"condition": condition, "cell": source}
    assert factors(Item(item.parts, source="syntax/binding/domain")) == {}
