"""What a figure's file says of itself: title, caption, the command that makes it again, its source, and citations."""

from __future__ import annotations

import re
import shlex
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from bertology.results.caption import caption_sentences, figure_title
from bertology.results.drawing import svg

if TYPE_CHECKING:
    from bertology.results.result import Result


@dataclass(frozen=True, slots=True)
class FigureMetadata:
    """Facts about a figure that travel in its file."""

    title: str
    caption: str
    command: str
    source: str
    citation: str

    @classmethod
    def of(cls, result: Result, command: str = "") -> FigureMetadata:
        """The metadata of a result's figure; the command is made from its inputs if it is not given."""
        return cls(
            title=figure_title(result),
            caption=" ".join(caption_sentences(result)),
            command=command or remake_command(result),
            source="\n".join([*(f"{k}: {v}" for k, v in _source(result).items())]),
            citation=result.bibtex(),
        )

    def as_svg(self) -> Markup:
        """The elements `title`, `desc` and `metadata` at the start of an SVG file."""
        facts = [f"command: {self.command}" if self.command else "", self.source, self.citation]
        parts = [("title", self.title), ("desc", self.caption), ("metadata", "\n".join(filter(None, facts)))]
        return Markup().join(svg.element(tag, text) for tag, text in parts if text)

    def add_to_png(self, content: bytes) -> bytes:
        """The image with its facts as text chunks, before the data of the image."""
        texts = {"Title": self.title, "Description": self.caption, "Comment": self.command, "Source": self.citation}
        chunks = b"".join(_text_chunk(key, text) for key, text in texts.items() if text)
        start = content.index(b"IDAT") - 4
        return content[:start] + chunks + content[start:]

    def add_to_pdf(self, content: bytes) -> bytes:
        """The document with its facts in the information dictionary, as an incremental update."""
        size, root = (re.search(pattern, content) for pattern in (rb"/Size (\d+)", rb"/Root (\d+ \d+ R)"))
        starts = re.findall(rb"startxref\s+(\d+)", content)
        if size is None or root is None or not starts:
            return content
        number = int(size[1])
        facts = {"Title": self.title, "Subject": self.caption, "Keywords": self.command, "Creator": "bertology"}
        entries = " ".join(f"/{key} {_pdf_text(text)}" for key, text in facts.items() if text)
        body = content if content.endswith(b"\n") else content + b"\n"
        information = f"{number} 0 obj\n<< {entries} >>\nendobj\n".encode()
        table = f"xref\n{number} 1\n{len(body):010} 00000 n \n".encode()
        trailer = (
            f"trailer\n<< /Size {number + 1} /Root {root[1].decode()} /Info {number} 0 R /Prev {int(starts[-1])} >>\n"
            f"startxref\n{len(body) + len(information)}\n%%EOF\n"
        ).encode()
        return body + information + table + trailer


def _source(result: Result) -> dict[str, str]:
    fields = {f"input {number}": line for number, line in enumerate(result.describe_inputs(), start=1)}
    return {
        "analysis": f"{result.analysis} (version {result.version})",
        **fields,
        "options": result.describe_options(),
        "versions": ", ".join(f"{name} {v}" for name, v in result.provenance.get("versions", {}).items()),
    }


def remake_command(result: Result) -> str:
    """The command that computes the result again; empty if its model or corpus is not known by name."""
    from bertology.corpus.read import BUILTIN_CORPORA, is_corpus_name

    arguments = ["bertology", "run", result.analysis]
    for role, flag in (("model", "--model"), ("against", "--against")):
        if model := result.inputs.get(role, {}).get("model"):
            arguments += [flag, str(model["name"])]
    summaries: list[Any] = [result.inputs.get("corpus"), result.inputs.get("model", {}).get("corpus")]
    corpus = next((summary for summary in summaries if summary), None)
    if corpus is None:
        return ""
    name = str(corpus["name"])
    name = Path(name).stem if Path(name).stem in BUILTIN_CORPORA else name
    if not is_corpus_name(name):
        return ""
    arguments += ["--corpus", name]
    arguments += ["--limit", str(corpus["examples"])] if "examples" in corpus else []
    for option, value in result.options.items():
        flag = option.replace("_", "-")
        if isinstance(value, bool):
            arguments.append(f"--{flag}" if value else f"--no-{flag}")
        elif value not in ("", None):
            arguments += [f"--{flag}", str(value)]
    return shlex.join(arguments)


def _text_chunk(key: str, text: str) -> bytes:
    """An `iTXt` chunk, which holds UTF-8."""
    data = b"iTXt" + key.encode("latin-1") + b"\0\0\0\0\0" + text.encode("utf-8", "replace")
    return struct.pack(">I", len(data) - 4) + data + struct.pack(">I", zlib.crc32(data))


def _pdf_text(text: str) -> str:
    return f"<FEFF{text.encode('utf-16-be', 'replace').hex().upper()}>"
