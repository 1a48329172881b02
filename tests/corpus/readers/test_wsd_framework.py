"""The WSD framework: words and instances from XML, senses from the key file."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpus.checks import ReaderSample, assert_offsets_match

from bertology.corpus.read import read
from bertology.errors import Refusal

KEYS = "s1.t0 bank%1:17:01:: bank%1:14:00::\ns2.t0 dog%1:05:00::\n"
FIRST = """<sentence id="s1">
<wf lemma="the" pos="DET">The</wf>
<instance id="s1.t0" lemma="bank" pos="NOUN">banks</instance>
<wf lemma="&amp;" pos=".">&amp;</wf>
</sentence>"""
SECOND = """<sentence id="s2">
<instance id="s2.t0" lemma="guide_dog" pos="NOUN">guide
 dog</instance>
</sentence>"""


@pytest.fixture
def sample(tmp_path: Path) -> ReaderSample:
    sample = ReaderSample(tmp_path, "wsd_framework", "sample.data.xml")
    sample.write(KEYS, "sample.gold.key.txt")
    return sample


def document(*sentences: str) -> str:
    body = "\n".join(sentences)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<corpus lang="en">\n<text id="d0">\n{body}\n</text>\n</corpus>\n'


def test_words_lemmas_tags_and_senses(sample: ReaderSample) -> None:
    corpus = sample.read(document(FIRST, SECOND))
    first, second = corpus.sentences
    assert first.words == ("The", "banks", "&")
    assert first.lemmas == ("the", "bank", "&")
    assert first.pos == ("DET", "NOUN", ".")
    assert first.senses == (None, "bank%1:17:01::", None)
    assert first.further_senses == ((), ("bank%1:14:00::",), ())
    assert second.further_senses is None
    assert (first.id, first.document) == ("s1", "d0")
    assert second.words == ("guide dog",)
    assert not corpus.skipped
    assert_offsets_match(corpus)


def test_keys_without_an_instance_are_counted_and_ignored(sample: ReaderSample) -> None:
    assert [skip.reason for skip in sample.read(document(SECOND)).skipped] == ["keys without an instance ignored"]


@pytest.mark.parametrize(
    ("bad", "reason", "line"),
    [
        (SECOND.replace("s2.t0", "s9"), "missing sense", 5),
        (SECOND.replace("guide\n dog", " "), "empty word", 5),
        ('<sentence id="s3"></sentence>', "no words", 4),
    ],
)
def test_a_malformed_sentence_is_refused_or_counted(bad: str, reason: str, line: int, sample: ReaderSample) -> None:
    text = document(bad, FIRST, SECOND)
    sample.assert_refused(text, line=line)
    assert reason in [skip.reason for skip in sample.read(text, skip_malformed=True).skipped]


def test_sentences_before_invalid_xml_are_read(sample: ReaderSample) -> None:
    text = document(SECOND, FIRST).replace('<wf lemma="the"', "<wf lemma=the")
    sample.assert_refused(text, "XML", line=9)
    corpus = sample.read(text, skip_malformed=True)
    assert len(corpus) == 1
    assert "invalid XML" in [skip.reason for skip in corpus.skipped]


def test_a_line_that_is_not_utf8_ends_the_reading(sample: ReaderSample) -> None:
    content = document(SECOND, FIRST).replace("banks", "b\udce9nks").encode("utf-8", "surrogateescape")
    sample.assert_refused(content, "UTF-8", line=10)
    assert len(sample.read(content, skip_malformed=True)) == 1


def test_an_empty_key_is_refused(sample: ReaderSample) -> None:
    sample.write("s1.t0\ns2.t0 x\n", "sample.gold.key.txt")
    sample.assert_refused(document(SECOND), "sample.gold.key.txt, line 1")


def test_the_key_file_is_required(sample: ReaderSample) -> None:
    path = sample.write(document(SECOND), "other.data.xml")
    with pytest.raises(Refusal, match=r"other\.gold\.key\.txt"):
        read(path)
    assert len(read(path, keys=str(sample.directory / "sample.gold.key.txt"))) == 1


def test_a_directory_is_read_as_its_data_file(tmp_path: Path) -> None:
    write_dataset(tmp_path / "semcor" / "semcor")
    assert len(read(tmp_path / "semcor")) == 2
    assert read(tmp_path / "semcor").format == "wsd_framework"


def test_the_evaluation_sets_are_read_as_their_union(tmp_path: Path) -> None:
    for name in ("ALL", "senseval2", "semeval2015"):
        write_dataset(tmp_path / name / name)
    assert len(read(tmp_path)) == 2  # not once more for each of the sets that it contains


def test_several_training_corpora_are_refused(tmp_path: Path) -> None:
    for name in ("semcor", "semcor+omsti"):
        write_dataset(tmp_path / name / name)
    with pytest.raises(Refusal, match=r"semcor\+omsti\.data\.xml.*contain each other"):
        read(tmp_path)


def write_dataset(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name(f"{path.name}.data.xml").write_text(document(FIRST, SECOND), "utf-8")
    path.with_name(f"{path.name}.gold.key.txt").write_text(KEYS, "utf-8")
