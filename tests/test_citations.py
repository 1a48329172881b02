"""References as BibTeX: every paper has a valid entry with all of its authors."""

from __future__ import annotations

import re

import pytest

from bertology.citations import CITATIONS, bibtex_entry

REQUIRED = {"inproceedings": {"booktitle"}, "article": {"journal"}, "misc": set[str]()}


def parse(entry: str) -> tuple[str, str, dict[str, str]]:
    """Kind, key and fields of an entry; braces must match."""
    match = re.fullmatch(r"@(\w+)\{(\w+),\n(.*)\n\}", entry, re.DOTALL)
    assert match is not None
    fields: dict[str, str] = {}
    for line in match[3].splitlines():
        field = re.fullmatch(r"  (\w+) = \{(.*)\},", line)
        assert field is not None, line
        depth = 0
        for brace in re.findall(r"(?<!\\)[{}]", field[2]):
            depth += 1 if brace == "{" else -1
            assert depth >= 0
        assert depth == 0
        fields[field[1]] = field[2]
    return match[1], match[2], fields


@pytest.mark.parametrize("key", CITATIONS)
def test_every_reference_is_a_valid_entry(key: str) -> None:
    kind, name, fields = parse(bibtex_entry(key))
    assert name == key and {"author", "title", "year"} | REQUIRED[kind] <= fields.keys()
    authors = CITATIONS[key].split(" (")[0]
    assert fields["author"].count(" and ") == authors.count(",") + authors.count("&")
    assert f"({fields['year']})" in CITATIONS[key]
    assert not re.search(r"(?<!\\)[&%$#_]", "".join(fields.values()))


def test_kinds_of_publications() -> None:
    assert parse(bibtex_entry("clark2019"))[2] == {
        "author": "Clark and Khandelwal and Levy and Manning",
        "title": "{What Does BERT Look At? An Analysis of BERT's Attention}",
        "booktitle": "BlackboxNLP",
        "year": "2019",
    }
    kind, _, fields = parse(bibtex_entry("efron1981"))
    assert (kind, fields["journal"], fields["volume"], fields["number"]) == ("article", "Biometrika", "68", "3")
    kind, _, fields = parse(bibtex_entry("goldberg2019"))
    assert (kind, fields["eprint"], fields["archiveprefix"]) == ("misc", "1901.05287", "arXiv")
    assert "{Van Durme}" in bibtex_entry("tenney2019edge") and r"\$\&!\#*" in bibtex_entry("conneau2018")
