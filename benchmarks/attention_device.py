"""What the attention statistics cost on a GPU, as a ratio to the bare forward pass of scaled-dot-product attention.

    python benchmarks/attention_device.py                    # the shape of BERT-base, bfloat16, 64 inputs of 512 tokens
    python benchmarks/attention_device.py --profile          # where the time goes

Beside it: transformers with eager attention that returns every map, moved to the host. Weights are random: what is
measured does not depend on them. Ways are run in turns; the device is waited for before the clock stops.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
import transformers

from attention import WORDS, battery
from bertology.corpus.corpus import Corpus, corpus_from_sentences
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import sentence_from_words
from bertology.encoder.encoder import ModelInputs
from bertology.encoder.huggingface import HuggingFaceEncoder, wrap
from bertology.encoder.load import load
from bertology.encoder.token_batch import TokenBatch
from bertology.recording.plan import RecordingConfig, make_plan
from bertology.recording.recorder import record
from bertology.recording.site_collector import SiteCollector
from bertology.recording.sites import ReducedSite, Site, strongest_word_site

TARGET = 2.0
GIB = 2**30


def main() -> None:
    options = _options()
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        print("No GPU here: nothing was measured. --device cpu runs it without, for hours unless it is made smaller.")
        return
    encoder = base_shaped(options.device, options.dtype, options.layers)
    config = RecordingConfig(
        overflow="truncate", max_length=options.tokens, tokens_per_batch=options.inputs * options.tokens
    )
    corpus = full_texts(encoder, options.inputs, options.tokens, config)
    entries = make_plan(encoder, corpus, config).inputs
    batch = TokenBatch(entries, options.device).model_inputs
    assert batch.input_ids.shape == (options.inputs, options.tokens) and bool(batch.attention_mask.all())
    asked = battery() | {WORDS: (strongest_word_site(),)}
    sites = tuple(site for some in asked.values() for site in some)
    frame = TokenBatch(entries, options.device)
    passes = {name: _pass_alone(encoder, frame, some) for name, some in asked.items()}
    whole = _pass_alone(encoder, frame, sites)
    ways: dict[str, Callable[[], object]] = {
        "bare forward, scaled-dot-product attention: the limit": lambda: _bare(encoder, batch),
        "bare forward, eager attention": lambda: _bare(encoder, batch, "eager"),
        "bertology: all of them, the pass alone": whole,
        "bare forward, from the texts": lambda: _bare_from_texts(encoder, corpus, options.tokens),
        "bertology: all of them, from the texts": lambda: record(encoder, corpus, sites, config=config),
        "transformers, every map moved to the host": lambda: _maps_on_the_host(encoder, batch),
        **({f"bertology: {name}, the pass alone": one for name, one in passes.items()} if options.each else {}),
    }
    if options.profile:
        _profiled(whole, options.device)
        return
    print(
        f"{encoder.layers} layers x {encoder.heads} heads x {encoder.width}, {options.dtype}, {len(entries)} inputs of "
        f"{options.tokens} tokens, {_device_name(options.device)}, torch {torch.__version__}\n{' + '.join(asked)}"
    )
    print_ways(ways, options.rounds, options.device)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--inputs", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--each", action="store_true", help="every statistic alone as well")
    parser.add_argument("--profile", action="store_true", help="where the time of bertology's way goes")
    return parser.parse_args()


def base_shaped(device: str, dtype: str, layers: int) -> HuggingFaceEncoder:
    """A model of the shape of BERT-base with random weights, reading with the tokeniser of `mini`."""
    mini = load("mini")
    assert isinstance(mini, HuggingFaceEncoder)
    tokenizer = copy.deepcopy(mini.hf_tokenizer)
    tokenizer.model_max_length = 512
    config = transformers.BertConfig(vocab_size=len(tokenizer), num_hidden_layers=layers)
    model: Any = transformers.BertModel(config, add_pooling_layer=False)
    return wrap(model.to(device=device, dtype=getattr(torch, dtype)), tokenizer, "the shape of BERT-base")


def running_text(inputs: int, tokens: int) -> Corpus:
    """Texts of at least so many words from the embedded corpus, over and over, each beginning at another word."""
    words = [word for example in load_corpus("english") for word in example.segments[0].words]
    texts = [[words[(7 * number + place) % len(words)] for place in range(tokens)] for number in range(inputs)]
    return corpus_from_sentences([sentence_from_words(text) for text in texts], name="running text")


def full_texts(encoder: HuggingFaceEncoder, inputs: int, tokens: int, config: RecordingConfig) -> Corpus:
    """Texts that have exactly so many tokens when they are cut off after a whole word."""
    entries = make_plan(encoder, running_text(8 * inputs, tokens), config).inputs
    full = [sentence_from_words(entry.text.words) for entry in entries if len(entry.tokens) == tokens]
    assert len(full) >= inputs
    return corpus_from_sentences(full[:inputs], name="running text")


def _pass_alone(encoder: HuggingFaceEncoder, frame: TokenBatch, sites: Sequence[Site]) -> Callable[[], object]:
    """A pass whose tokens are on the device, with what its sites know of the words made beforehand."""
    ready: list[Site] = []
    for site in sites:
        if isinstance(site, ReducedSite) and site.prepare:
            site = replace(site, prepare=_already(site.prepare(frame)))
        ready.append(site)

    def run() -> object:
        with torch.inference_mode():
            catch = SiteCollector(frame, ready, encoder.layers, half_precision=False)
            return catch.finish(
                encoder.forward(frame.model_inputs, on_layer=catch.on_layer, hidden=catch.needs_hidden_states)
            )

    return run


def _already(made: Any) -> Callable[[TokenBatch], Any]:
    return lambda frame: made


def print_ways(ways: dict[str, Callable[[], object]], rounds: int, device: str) -> None:
    """Median seconds, peak memory beyond what was there before, and both as ratios to the first way."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    peaks: dict[str, float] = {}
    for number in range(rounds + 2):
        for name, way in ways.items():
            taken, peak = _measured(way, device)
            if number >= 2:  # the first rounds warm up
                seconds[name].append(taken)
                peaks[name] = max(peak, peaks.get(name, 0.0))
    first = next(iter(ways))
    print(f"{'':<60}{'ms':>9}{'x limit':>9}{'lowest to highest':>20}{'peak GiB':>10}{'x limit':>9}")
    for name, times in seconds.items():
        ratios = [own / bare for own, bare in zip(times, seconds[first], strict=True)]
        share = peaks[name] / peaks[first] if peaks[first] else float("nan")
        print(
            f"{name:<60}{1000 * statistics.median(times):>9.1f}{statistics.median(ratios):>9.2f}"
            f"{f'{min(ratios):.2f} to {max(ratios):.2f}':>20}{peaks[name] / GIB:>10.2f}{share:>9.2f}",
            flush=True,
        )
    print(f"target: bertology below {TARGET:.1f} x the limit")


def _measured(way: Callable[[], object], device: str) -> tuple[float, float]:
    before = _start(device)
    start = time.perf_counter()
    way()
    _wait(device)
    return time.perf_counter() - start, (torch.cuda.max_memory_allocated() - before) if device != "cpu" else 0.0


def _start(device: str) -> int:
    if device == "cpu":
        return 0
    _wait(device)
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()


def _wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def _bare(encoder: HuggingFaceEncoder, batch: ModelInputs, implementation: str = "sdpa") -> None:
    with _implementation(encoder.model, implementation), torch.inference_mode():
        encoder.model(
            input_ids=batch.input_ids, token_type_ids=batch.token_type_ids
        )  # all inputs are full: no mask, the fastest way


def _bare_from_texts(encoder: HuggingFaceEncoder, corpus: Corpus, tokens: int) -> None:
    texts = [sentence.text for sentence in corpus.sentences]
    given = encoder.hf_tokenizer(texts, truncation=True, max_length=tokens, padding=True, return_tensors="pt")
    with _implementation(encoder.model, "sdpa"), torch.inference_mode():
        encoder.model(**given.to(encoder.device))


def _maps_on_the_host(encoder: HuggingFaceEncoder, batch: ModelInputs) -> Sequence[torch.Tensor]:
    with _implementation(encoder.model, "eager"), torch.inference_mode():
        returned = encoder.model(
            input_ids=batch.input_ids,
            attention_mask=batch.attention_mask,
            token_type_ids=batch.token_type_ids,
            output_attentions=True,
        )
        return [attention.cpu() for attention in returned.attentions]


class _implementation:
    """The model's own attention, of the kind that is named, while inside."""

    def __init__(self, model: Any, name: str) -> None:
        self.model, self.name = model, name

    def __enter__(self) -> None:
        self.before = self.model.config._attn_implementation
        self.model.config._attn_implementation = self.name

    def __exit__(self, *_: object) -> None:
        self.model.config._attn_implementation = self.before


def _profiled(way: Callable[[], object], device: str) -> None:
    way()
    _wait(device)
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities if device != "cpu" else activities[:1]) as profile:
        way()
        _wait(device)
    by = "self_cuda_time_total" if device != "cpu" else "self_cpu_time_total"
    print(profile.key_averages().table(sort_by=by, row_limit=25, max_name_column_width=60))


def _device_name(device: str) -> str:
    return torch.cuda.get_device_name() if device != "cpu" else "a CPU"


if __name__ == "__main__":
    main()
