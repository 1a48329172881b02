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
from pretraining.evaluation.attention import measure_attention, measure_pair_attention
from pretraining.evaluation.blimp import blimp_accuracy
from pretraining.evaluation.evaluated_model import EvaluatedModel, load_model
from pretraining.evaluation.masked_words import masked_word_accuracy
from pretraining.evaluation.next_sentence import next_sentence_accuracy, sample_pairs
from pretraining.evaluation.structural_probe import structural_probe
from pretraining.evaluation.treebank import Tree, read_trees
from pretraining.stream import HELD_OUT_EVERY


@dataclass(frozen=True)
class EvaluationData:
    """The data to evaluate on; measures whose data is None are skipped."""

    dev: list[Tree]
    train: list[Tree] | None
    blimp: Path | None
    pairs_per_paradigm: int | None
    held_out: list[Document] | None


def evaluate(model: EvaluatedModel, data: EvaluationData) -> dict[str, Any]:
    """All scores as plain values, by measure; the seconds of each measure are printed to standard error."""
    measures: dict[str, Callable[[], object]] = {
        "mlm": lambda: masked_word_accuracy(model, data.dev),
        "nsp_treebank": lambda: next_sentence_accuracy(model, sample_pairs(model, group_by_document(data.dev))),
        "attention": lambda: measure_attention(model, data.dev),
    }
    if data.held_out is not None:
        pairs = sample_pairs(model, data.held_out)
        measures["nsp_held_out"] = lambda: next_sentence_accuracy(model, pairs)
        measures["pair_attention"] = lambda: measure_pair_attention(model, pairs)
    if (train := data.train) is not None:
        measures["structural_probe"] = lambda: structural_probe(model, train, data.dev)
    if (directory := data.blimp) is not None:
        measures["blimp"] = lambda: blimp_accuracy(model, directory, max_pairs=data.pairs_per_paradigm)
    scores: dict[str, Any] = {}
    for name, measure in measures.items():
        start = time.monotonic()
        scores[name] = asdict(measure())  # pyright: ignore[reportArgumentType]
        print(f"{name}: {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)
    return scores


def held_out_documents(text: Path) -> list[Document]:
    """The documents of a training text that are held out of training."""
    return list(islice(read_documents(text), HELD_OUT_EVERY - 1, None, HELD_OUT_EVERY))


def group_by_document(trees: list[Tree]) -> list[list[str]]:
    """The sentences of each document as text, words joined by spaces."""
    documents: dict[str, list[str]] = {}
    for tree in trees:
        documents.setdefault(tree.document, []).append(" ".join(tree.words))
    return list(documents.values())


def summary(scores: dict[str, Any]) -> str:
    """The main scores as a few lines of text."""
    mlm, attention = scores["mlm"], scores["attention"]
    lines = [
        f"MLM top-1 {mlm['top1']:.4f} (no punctuation {mlm['top1_without_punctuation']:.4f}) n={mlm['n']}",
        f"MLM perplexity {mlm['perplexity']:.2f}",
        f"NSP treebank {scores['nsp_treebank']['accuracy']:.4f}",
        f"next token: head {attention['next_head']} {attention['next_accuracy']:.3f},"
        f" attention {attention['next_attention']:.3f}",
        f"previous token: head {attention['previous_head']} {attention['previous_accuracy']:.3f},"
        f" attention {attention['previous_attention']:.3f}",
        f"attention to [SEP] by layer {_by_layer(attention['sep'])} (uniform {attention['uniform']:.3f})",
        f"attention to [CLS] by layer {_by_layer(attention['cls'])}",
        f"attention to [SEP], highest head by layer {_by_layer(attention['sep_highest_head'])}",
    ]
    for relation, best in attention["relations"].items():
        offset = f"best fixed offset {best['offset']:+d} {best['offset_accuracy']:.3f}"
        lines.append(f"{relation}: head {best['head']} {best['accuracy']:.3f} ({offset}) n={best['n']}")
    if "nsp_held_out" in scores:
        pairs = scores["pair_attention"]
        lines.append(f"NSP held-out documents {scores['nsp_held_out']['accuracy']:.4f}")
        lines.append(f"pairs: attention to [SEP] {_by_layer(pairs['sep'])} (uniform {pairs['uniform_sep']:.3f})")
        lines.append(f"pairs: attention to [CLS] {_by_layer(pairs['cls'])} (uniform {pairs['uniform_cls']:.3f})")
    if "structural_probe" in scores:
        probe = scores["structural_probe"]
        lines.append(f"UUAS by layer {_by_layer(probe['uuas'])} (linear chain {probe['linear_chain']:.3f})")
    if "blimp" in scores:
        lines.append(f"BLiMP {scores['blimp']['accuracy']:.4f} n={scores['blimp']['n']}")
    return "\n".join(lines)


def _by_layer(values: list[float]) -> str:
    return " ".join(f"{value:.3f}" for value in values)


def main() -> None:
    """Evaluate a model and write the scores as JSON; a summary is printed to standard error."""
    parser = argparse.ArgumentParser(prog="python -m pretraining.evaluate", description=main.__doc__)
    parser.add_argument("model", type=Path, help="BertForPreTraining directory")
    parser.add_argument("--dev", type=Path, required=True, help="CoNLL-U treebank to evaluate on")
    parser.add_argument("--train", type=Path, help="CoNLL-U treebank to train the structural probe on")
    parser.add_argument("--blimp", type=Path, help="directory of BLiMP paradigms (*.jsonl)")
    parser.add_argument("--pairs-per-paradigm", type=int, help="use only the first N pairs of each paradigm")
    parser.add_argument("--text", type=Path, help="training text; its held-out documents are evaluated")
    parser.add_argument("--max-sentences", type=int, help="use only the first N sentences of each treebank")
    parser.add_argument(
        "--untrained", type=int, metavar="SEED", help="evaluate random weights of the same architecture instead"
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="cpu or cuda")
    parser.add_argument("-o", "--output", type=Path, help="JSON file (default: standard output)")
    options = parser.parse_args()
    data = EvaluationData(
        dev=read_trees(options.dev)[: options.max_sentences],
        train=read_trees(options.train)[: options.max_sentences] if options.train else None,
        blimp=options.blimp,
        pairs_per_paradigm=options.pairs_per_paradigm,
        held_out=held_out_documents(options.text) if options.text else None,
    )
    scores = evaluate(load_model(options.model, device=options.device, random_seed=options.untrained), data)
    print(summary(scores), file=sys.stderr)
    text = json.dumps(scores, indent=1)
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
