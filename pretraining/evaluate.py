"""Compute all numbers of the model card from a model in Hugging Face format."""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from pretraining.corpus import Document, read_documents
from pretraining.evaluation.attention import attention_figures, pair_shares
from pretraining.evaluation.blimp import blimp_accuracy
from pretraining.evaluation.following import draw_pairs, next_sentence_accuracy
from pretraining.evaluation.masked import word_accuracy
from pretraining.evaluation.probe import structural_probe
from pretraining.evaluation.subject import Subject, load_subject
from pretraining.evaluation.treebank import Tree, read_trees
from pretraining.stream import HELD_OUT


@dataclass(frozen=True)
class Material:
    """What the model is judged on; a part that is None is not measured."""

    dev: list[Tree]
    train: list[Tree] | None
    blimp: Path | None
    pairs: int | None
    held_out: list[Document] | None


def figures(subject: Subject, material: Material) -> dict[str, Any]:
    """All figures as plain values, by name, with the seconds each took on standard error."""
    measures: dict[str, Callable[[], object]] = {
        "mlm": lambda: word_accuracy(subject, material.dev),
        "nsp_treebank": lambda: next_sentence_accuracy(subject, draw_pairs(subject, by_document(material.dev))),
        "attention": lambda: attention_figures(subject, material.dev),
    }
    if material.held_out is not None:
        pairs = draw_pairs(subject, material.held_out)
        measures["nsp_held_out"] = lambda: next_sentence_accuracy(subject, pairs)
        measures["pair_shares"] = lambda: pair_shares(subject, pairs)
    if (train := material.train) is not None:
        measures["probe"] = lambda: structural_probe(subject, train, material.dev)
    if (folder := material.blimp) is not None:
        measures["blimp"] = lambda: blimp_accuracy(subject, folder, pairs=material.pairs)
    values: dict[str, Any] = {}
    for name, measure in measures.items():
        start = time.monotonic()
        values[name] = asdict(measure())  # pyright: ignore[reportArgumentType]
        print(f"{name}: {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)
    return values


def held_out_documents(text: Path) -> list[Document]:
    """The documents of a training text that training never draws."""
    return list(islice(read_documents(text), HELD_OUT - 1, None, HELD_OUT))


def by_document(trees: list[Tree]) -> list[list[str]]:
    """The sentences of each document as text, words joined by spaces."""
    documents: dict[str, list[str]] = {}
    for tree in trees:
        documents.setdefault(tree.document, []).append(" ".join(tree.words))
    return list(documents.values())


def summary(values: dict[str, Any]) -> str:
    """The figures that matter most, as a few lines of text."""
    mlm, attention = values["mlm"], values["attention"]
    lines = [
        f"mlm top-1 {mlm['top1']:.4f} (no punctuation {mlm['top1_without_punctuation']:.4f}) n={mlm['n']}",
        f"mlm perplexity {mlm['perplexity']:.2f}",
        f"nsp treebank {values['nsp_treebank']['accuracy']:.4f}",
        f"next {attention['next_head']} {attention['next_share']:.3f} mass {attention['next_mass']:.3f}",
        f"previous {attention['previous_head']} {attention['previous_share']:.3f}"
        f" mass {attention['previous_mass']:.3f}",
        f"sep by layer {_row(attention['sep'])} (uniform {attention['uniform']:.3f})",
        f"cls by layer {_row(attention['cls'])}",
        f"sep of best head {_row(attention['sep_of_best_head'])}",
    ]
    for name, best in attention["relations"].items():
        offset = f"offset {best['offset']:+d} {best['offset_accuracy']:.3f}"
        lines.append(f"{name} {best['head']} {best['accuracy']:.3f} ({offset}) n={best['n']}")
    if "nsp_held_out" in values:
        shares = values["pair_shares"]
        lines.append(f"nsp held-out {values['nsp_held_out']['accuracy']:.4f}")
        lines.append(f"pairs: sep {_row(shares['sep'])} (uniform {shares['uniform_sep']:.3f})")
        lines.append(f"pairs: cls {_row(shares['cls'])} (uniform {shares['uniform_cls']:.3f})")
    if "probe" in values:
        lines.append(f"uuas {_row(values['probe']['uuas'])} chain {values['probe']['chain']:.3f}")
    if "blimp" in values:
        lines.append(f"blimp {values['blimp']['accuracy']:.4f} n={values['blimp']['n']}")
    return "\n".join(lines)


def _row(shares: list[float]) -> str:
    return " ".join(f"{share:.3f}" for share in shares)


def main() -> None:
    """Measure a model directory and write the figures as JSON; a short table goes to standard error."""
    parser = argparse.ArgumentParser(prog="python -m pretraining.evaluate", description=main.__doc__)
    parser.add_argument("model", type=Path, help="BertForPreTraining directory")
    parser.add_argument("--dev", type=Path, required=True, help="CoNLL-U to judge on")
    parser.add_argument("--train", type=Path, help="CoNLL-U the structural probe learns from")
    parser.add_argument("--blimp", type=Path, help="folder of BLiMP paradigms (*.jsonl)")
    parser.add_argument("--pairs", type=int, help="first pairs of each paradigm only")
    parser.add_argument(
        "--text", type=Path, help="the training text; figures are of its documents held out of training"
    )
    parser.add_argument("--sentences", type=int, help="first sentences of each treebank only")
    parser.add_argument("--random", type=int, metavar="SEED", help="judge fresh weights of the same shape instead")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("-o", "--output", type=Path, help="JSON file; standard output without it")
    arguments = parser.parse_args()
    material = Material(
        dev=read_trees(arguments.dev)[: arguments.sentences],
        train=read_trees(arguments.train)[: arguments.sentences] if arguments.train else None,
        blimp=arguments.blimp,
        pairs=arguments.pairs,
        held_out=held_out_documents(arguments.text) if arguments.text else None,
    )
    subject = load_subject(arguments.model, device=arguments.device, random_seed=arguments.random)
    values = figures(subject, material)
    print(summary(values), file=sys.stderr)
    text = json.dumps(values, indent=1)
    if arguments.output:
        arguments.output.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
