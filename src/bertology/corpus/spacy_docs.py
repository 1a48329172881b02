"""spaCy documents as sentences with their annotations; spaCy itself is not imported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bertology.corpus.example import Example
from bertology.corpus.readers.conllu import check_tree
from bertology.corpus.sentence import ROOT, Sentence, Span
from bertology.corpus.text_files import ParseErrorHandler, parse_all


def is_doc(value: object) -> bool:
    """Whether the value is a spaCy Doc."""
    return all(hasattr(value, name) for name in ("has_annotation", "ents", "spans", "vocab"))


def doc_examples(docs: list[Any], source: Path, errors: ParseErrorHandler) -> Iterator[Example]:
    """Yield one example per sentence of each Doc, or per Doc where sentence boundaries are not annotated.

    Words are the tokens of spaCy without white space. An annotation is present if the Doc has it; span groups
    (`doc.spans`) are span labels under their own names.
    """
    number = 0
    for document, doc in enumerate(docs, start=1):
        sentences = list(doc.sents) if doc.has_annotation("SENT_START") else [doc[:]]
        numbered = [(number + index, sentence) for index, sentence in enumerate(sentences, start=1)]
        number += len(sentences)

        def parse(line: int, span: Any, doc: Any = doc, document: int = document) -> Example:
            sentence = replace(_to_sentence(doc, span), id=str(line), document=str(document))
            if sentence.governors is not None:
                check_tree(sentence.governors, [line] * len(sentence))
            return Example((sentence,), id=sentence.id)

        yield from parse_all(source, errors, ((n, s) for n, s in numbered if not _is_blank(s)), parse)


def _is_blank(span: Any) -> bool:
    return all(token.is_space for token in span)


def _to_sentence(doc: Any, span: Any) -> Sentence:
    tokens = [token for token in span if not token.is_space]
    index = {token.i: position for position, token in enumerate(tokens)}
    begin = tokens[0].idx
    end = tokens[-1].idx + len(tokens[-1].text)
    annotations: dict[str, Any] = {}
    for name, attribute, spacy_name in (
        ("pos", "pos_", "POS"), ("xpos", "tag_", "TAG"), ("lemmas", "lemma_", "LEMMA"), ("relations", "dep_", "DEP"),
    ):  # fmt: skip
        if doc.has_annotation(spacy_name):
            annotations[name] = tuple(getattr(token, attribute) for token in tokens)
    if doc.has_annotation("MORPH"):
        annotations["morphology"] = tuple(str(token.morph) or "_" for token in tokens)
    if doc.has_annotation("DEP"):
        annotations["governors"] = tuple(_governor(token, index) for token in tokens)
    if doc.has_annotation("ENT_IOB"):
        annotations["entities"] = _spans(doc.ents, index)
    groups = {str(name): _spans(group, index) for name, group in doc.spans.items()}
    return Sentence(
        words=tuple(token.text for token in tokens),
        text=doc.text[begin:end],
        offsets=tuple((token.idx - begin, token.idx - begin + len(token.text)) for token in tokens),
        span_labels=MappingProxyType(groups),
        **annotations,
    )


def _governor(token: Any, index: dict[int, int]) -> int:
    """The governor of a token, past white space; tokens that govern themselves are roots."""
    governor = token.head
    while governor.is_space and governor.head is not governor and governor.head.i != governor.i:
        governor = governor.head
    return ROOT if governor.i == token.i else index.get(governor.i, ROOT)


def _spans(spans: Any, index: dict[int, int]) -> tuple[Span, ...]:
    """The spans whose first and last words are in the sentence."""
    inside: list[Span] = []
    for span in spans:
        words = [index[token.i] for token in span if token.i in index]
        if words and len(words) == sum(not token.is_space for token in span):
            inside.append(Span(words[0], words[-1] + 1, str(span.label_)))
    return tuple(inside)
