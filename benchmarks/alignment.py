"""Processor time of aligning tokens to words, relative to reading every offset from the tokeniser.

    python benchmarks/alignment.py                 # texts of 512 tokens
    python benchmarks/alignment.py --corpus FILE   # sentences of a corpus

The tokeniser's own work in Rust is done before and not timed. One thread; both ways alternate.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from attention_device import bert_base_sized, full_texts
from bertology.corpus.example import TextInput
from bertology.corpus.read import as_corpus, load_corpus
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.load import load
from bertology.encoder.token_lengths import TokenLengths
from bertology.recording.plan import RecordingConfig
from timing import interleave, print_header, print_row

BATCH_SIZE, LENGTH = 64, 512


def main() -> None:
    options = _options()
    encoder = load(options.model) if options.corpus else bert_base_sized("cpu", "float32", layers=1)
    assert isinstance(encoder, HuggingFaceEncoder)
    inputs = _inputs(encoder, options.corpus)
    tokeniser: Any = encoder.tokeniser  # its private functions are timed
    batches = [(batch, tokeniser._encode(batch)) for batch in inputs]
    lengths: TokenLengths | None = tokeniser._token_lengths
    assert lengths is not None, "the offsets of this tokeniser are always read"

    def align(known_lengths: TokenLengths | None) -> object:
        tokeniser._token_lengths = known_lengths
        return [tokeniser._align(batch, encodings) for batch, encodings in batches]

    ratios, seconds = interleave(
        lambda: align(None), {"offsets computed from lengths": lambda: align(lengths)}, options.rounds
    )
    n_tokens = sum(len(encoding.ids) for _, encodings in batches for encoding in encodings)
    print(f"{n_tokens} tokens; with all offsets read {1e6 * seconds / n_tokens:.2f} ms for 1,000 tokens")
    print_header()
    for name, ratio in ratios.items():
        print_row(name, ratio)


def _inputs(encoder: HuggingFaceEncoder, corpus_name: str) -> list[Sequence[TextInput]]:
    if corpus_name:
        corpus = load_corpus(corpus_name)
    else:
        config = RecordingConfig(overflow="truncate", max_length=LENGTH, tokens_per_batch=BATCH_SIZE * LENGTH)
        texts = full_texts(encoder, 8 * BATCH_SIZE, LENGTH, config)
        corpus = as_corpus([sentence.text for sentence in texts.sentences])
    inputs = [text_input for example in corpus.examples for text_input in example.text_inputs]
    return [inputs[start : start + BATCH_SIZE] for start in range(0, len(inputs), BATCH_SIZE)]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", default="", help="align the sentences of this corpus")
    parser.add_argument("--model", default="mini", help="model whose tokeniser aligns a corpus")
    parser.add_argument("--rounds", type=int, default=15, help="number of interleaved repetitions")
    return parser.parse_args()


if __name__ == "__main__":
    main()
