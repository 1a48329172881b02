"""Cost of the attention statistics on a GPU, relative to a plain forward pass with scaled-dot-product attention.

    python benchmarks/attention_device.py                    # the shape of BERT-base, bfloat16, 64 inputs of 512 tokens
    python benchmarks/attention_device.py --profile          # where the time goes
    python benchmarks/attention_device.py --batches 40       # from plain texts, relative to the device alone
    python benchmarks/attention_device.py --corpus FILE      # short sentences, in tokens per second
    python benchmarks/attention_device.py --batches 40 --stages   # the host's processor time by stage

Compared with transformers with eager attention whose attention weights are moved to the CPU. Weights are random,
because the time does not depend on them. Methods alternate; the device is synchronised before the clock stops.
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

from attention import WORDS, statistics_sites
from bertology.corpus import text_examples
from bertology.corpus.corpus import Corpus, corpus_from_sentences
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import sentence_from_words
from bertology.encoder.encoder import ModelInputs
from bertology.encoder.huggingface import HuggingFaceEncoder, wrap
from bertology.encoder.load import load
from bertology.encoder.token_batch import TokenBatch
from bertology.encoder.tokens import Tokeniser
from bertology.recording.plan import RecordingConfig, make_plan
from bertology.recording.recorder import record
from bertology.recording.site_collector import SiteCollector
from bertology.recording.sites import ReducedSite, Site, strongest_word_site

GIB = 2**30


def main() -> None:
    options = _options()
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        print("No GPU found, nothing measured. --device cpu works, but takes hours without a smaller --batch-size.")
        return
    encoder = bert_base_sized(options.device, options.dtype, options.layers)
    config = RecordingConfig(
        overflow="truncate", max_length=options.length, tokens_per_batch=options.batch_size * options.length
    )
    corpus = full_texts(encoder, options.batch_size, options.length, config)
    planned_inputs = make_plan(encoder, corpus, config).inputs
    token_batch = TokenBatch(planned_inputs, options.device)
    batch = token_batch.model_inputs
    assert batch.input_ids.shape == (options.batch_size, options.length) and bool(batch.attention_mask.all())
    statistics = statistics_sites() | {WORDS: (strongest_word_site(),)}
    sites = tuple(site for group in statistics.values() for site in group)
    passes = {name: _forward_pass(encoder, token_batch, group) for name, group in statistics.items()}
    all_statistics = _forward_pass(encoder, token_batch, sites)
    methods: dict[str, Callable[[], object]] = {
        "plain forward pass, scaled-dot-product attention: the limit": lambda: _plain_forward(encoder, batch),
        "plain forward pass, eager attention": lambda: _plain_forward(encoder, batch, "eager"),
        "bertology: all statistics, forward pass only": all_statistics,
        "plain forward pass, with tokenising": lambda: _plain_from_texts(encoder, corpus, options.length),
        "bertology: all statistics, with tokenising": lambda: record(encoder, corpus, sites, config=config),
        "transformers, all attention moved to the CPU": lambda: _attention_on_cpu(encoder, batch),
        **({f"bertology: {name}, forward pass only": run for name, run in passes.items()} if options.each else {}),
    }
    if options.profile:
        _print_profile(all_statistics, options.device)
        return
    if options.stages:
        _print_stages(encoder, sites, config, options)
        return
    if options.batches:
        _print_end_to_end(encoder, sites, config, options)
        return
    if options.corpus:
        _print_sentences(encoder, sites, options)
        return
    print(
        f"{encoder.layers} layers x {encoder.heads} heads x {encoder.width}, {options.dtype}, "
        f"{len(planned_inputs)} inputs of {options.length} tokens, {_device_name(options.device)}, "
        f"torch {torch.__version__}\n{' + '.join(statistics)}"
    )
    print_methods(methods, options.rounds, options.device)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda", help="cpu or cuda")
    parser.add_argument("--dtype", default="bfloat16", help="dtype of the weights")
    parser.add_argument("--layers", type=int, default=12, help="number of layers")
    parser.add_argument("--batch-size", type=int, default=64, help="inputs per batch")
    parser.add_argument("--length", type=int, default=512, help="tokens per input")
    parser.add_argument("--rounds", type=int, default=9, help="number of interleaved repetitions")
    parser.add_argument("--each", action="store_true", help="also time every statistic alone")
    parser.add_argument("--profile", action="store_true", help="profile all statistics")
    parser.add_argument("--batches", type=int, default=0, help="time this many batches from plain texts, end to end")
    parser.add_argument("--stages", action="store_true", help="print the host's processor time by stage instead")
    parser.add_argument("--corpus", default="", help="time this corpus end to end, its inputs sorted by length")
    return parser.parse_args()


def bert_base_sized(device: str, dtype: str, layers: int) -> HuggingFaceEncoder:
    """A model of the size of BERT-base with random weights and the tokeniser of `mini`."""
    mini = load("mini")
    assert isinstance(mini, HuggingFaceEncoder)
    tokenizer = copy.deepcopy(mini.hf_tokenizer)
    tokenizer.model_max_length = 512
    config = transformers.BertConfig(vocab_size=len(tokenizer), num_hidden_layers=layers)
    model: Any = transformers.BertModel(config, add_pooling_layer=False)
    return wrap(model.to(device=device, dtype=getattr(torch, dtype)), tokenizer, "the size of BERT-base")


def running_text(inputs: int, tokens: int) -> Corpus:
    """Texts of `tokens` words from the built-in corpus, repeated as needed, each with another first word."""
    words = [word for example in load_corpus("english") for word in example.segments[0].words]
    texts = [[words[(7 * number + offset) % len(words)] for offset in range(tokens)] for number in range(inputs)]
    return corpus_from_sentences([sentence_from_words(text) for text in texts], name="running text")


def full_texts(encoder: HuggingFaceEncoder, inputs: int, tokens: int, config: RecordingConfig) -> Corpus:
    """Texts that have exactly `tokens` tokens when truncated after a word."""
    planned_inputs = make_plan(encoder, running_text(2 * inputs, tokens), config).inputs
    full = [sentence_from_words(planned.text.words) for planned in planned_inputs if len(planned.tokens) == tokens]
    assert len(full) >= inputs
    return corpus_from_sentences(full[:inputs], name="running text")


def _forward_pass(encoder: HuggingFaceEncoder, batch: TokenBatch, sites: Sequence[Site]) -> Callable[[], object]:
    """A forward pass over tokens on the device, with the word alignment of its sites prepared beforehand."""
    prepared_sites: list[Site] = []
    for site in sites:
        if isinstance(site, ReducedSite) and site.prepare:
            site = replace(site, prepare=_constant(site.prepare(batch)))
        prepared_sites.append(site)

    def run() -> object:
        with torch.inference_mode():
            collector = SiteCollector(batch, prepared_sites, encoder.layers, half_precision=False)
            return collector.finish(
                encoder.forward(batch.model_inputs, on_layer=collector.on_layer, hidden=collector.needs_hidden_states)
            )

    return run


def _constant(prepared: Any) -> Callable[[TokenBatch], Any]:
    return lambda batch: prepared


def print_methods(
    methods: dict[str, Callable[[], object]], rounds: int, device: str, n_tokens: int | None = None
) -> None:
    """Print the median time and the additional peak memory, both also relative to the first method."""
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    peaks: dict[str, float] = {}
    for number in range(rounds + 2):
        for name, method in methods.items():
            elapsed, peak = _measure(method, device)
            if number >= 2:  # the first rounds warm up
                seconds[name].append(elapsed)
                peaks[name] = max(peak, peaks.get(name, 0.0))
    first = next(iter(methods))
    rate_header = "" if n_tokens is None else f"{'tokens/s':>12}"
    print(f"{'':<60}{'ms':>9}{'x limit':>9}{'lowest to highest':>20}{'peak GiB':>10}{'x limit':>9}{rate_header}")
    for name, times in seconds.items():
        ratios = [method / limit for method, limit in zip(times, seconds[first], strict=True)]
        peak_ratio = peaks[name] / peaks[first] if peaks[first] else float("nan")
        print(
            f"{name:<60}{1000 * statistics.median(times):>9.1f}{statistics.median(ratios):>9.2f}"
            f"{f'{min(ratios):.2f} to {max(ratios):.2f}':>20}{peaks[name] / GIB:>10.2f}{peak_ratio:>9.2f}"
            + ("" if n_tokens is None else f"{n_tokens / statistics.median(times):>12.0f}"),
            flush=True,
        )


def _print_end_to_end(
    encoder: HuggingFaceEncoder, sites: Sequence[Site], config: RecordingConfig, options: argparse.Namespace
) -> None:
    """Time all statistics from plain texts, relative to the same passes with everything prepared on the device."""
    corpus = full_texts(encoder, options.batches * options.batch_size, options.length, config)
    texts = [sentence.text for sentence in corpus.sentences]
    plan = make_plan(encoder, corpus, config)
    batches = [batch for shard in plan.shards for batch in shard]
    # Two batches are enough to time: all have the same shape, and prepared batches take memory.
    passes = [
        _forward_pass(encoder, TokenBatch([plan.inputs[index] for index in batch], options.device), sites)
        for batch in batches[:2]
    ]

    def device_only() -> None:
        for number in range(len(batches)):
            passes[number % len(passes)]()

    methods: dict[str, Callable[[], object]] = {
        f"device only, {len(batches)} batches: the limit": device_only,
        "from a corpus of sentences": lambda: record(encoder, corpus, sites, config=config),
        "from plain texts": lambda: record(encoder, texts, sites, config=config),
    }
    n_tokens = sum(len(recorded.tokens) for recorded in plan.inputs)
    print(f"{len(batches)} batches, {n_tokens} tokens, {_device_name(options.device)}, torch {torch.__version__}")
    print_methods(methods, options.rounds, options.device, n_tokens)


def _print_sentences(encoder: HuggingFaceEncoder, sites: Sequence[Site], options: argparse.Namespace) -> None:
    """Time all statistics of short sentences, relative to a plain forward pass over the same batches."""
    corpus, config = load_corpus(options.corpus), RecordingConfig(overflow="truncate")
    plan = make_plan(encoder, corpus, config)
    batches = [
        TokenBatch([plan.inputs[index] for index in batch], options.device).model_inputs
        for shard in plan.shards
        for batch in shard
    ]

    def plain() -> None:
        with _AttentionImplementation(encoder.model, "sdpa"), torch.inference_mode():
            for batch in batches:
                encoder.model(
                    input_ids=batch.input_ids, token_type_ids=batch.token_type_ids, attention_mask=batch.attention_mask
                )

    methods: dict[str, Callable[[], object]] = {
        "plain forward passes over tokens on the device: the limit": plain,
        "all statistics, end to end": lambda: record(encoder, corpus, sites, config=config),
    }
    n_tokens = sum(len(recorded.tokens) for recorded in plan.inputs)
    print(f"{len(plan.inputs)} sentences, {n_tokens} tokens, {len(batches)} batches, {_device_name(options.device)}")
    print_methods(methods, options.rounds, options.device, n_tokens)


STAGES: dict[str, tuple[Any, str]] = {
    "words of texts": (text_examples, "sentences_from_texts"),
    "tokeniser (the calling thread alone)": (Tokeniser, "_encode"),
    "arrays of tokens, aligned to words": (Tokeniser, "_align"),
    "preparation": (SiteCollector, "__init__"),
    "preparation for the kernels": (SiteCollector, "prepare"),
    "launching the pass and most reductions": (HuggingFaceEncoder, "forward"),
    "launching the last reductions": (SiteCollector, "submit"),
    "results": (SiteCollector, "arrays"),
}
"""Functions that the threads of the host spend most of their time in."""


def _print_stages(
    encoder: HuggingFaceEncoder, sites: Sequence[Site], config: RecordingConfig, options: argparse.Namespace
) -> None:
    """The processor time of each stage for a batch of texts, or for 1,000 sentences of a corpus."""
    if options.corpus:
        data: Any = load_corpus(options.corpus)
        config, n_units, unit = RecordingConfig(overflow="truncate"), len(data) / 1000, "1,000 sentences"
    else:
        n_units, unit = max(8, options.batches), "a batch"
        full = full_texts(encoder, n_units * options.batch_size, options.length, config)
        data = [sentence.text for sentence in full.sentences]
    record(encoder, data, sites, config=config, max_hours=None)
    seconds = {name: _add_timer(owner, function) for name, (owner, function) in STAGES.items()}
    start = time.perf_counter()
    record(encoder, data, sites, config=config, max_hours=None)
    _synchronise(options.device)
    elapsed = time.perf_counter() - start
    print(f"milliseconds of processor time for {unit}, by stage; by the clock {1000 * elapsed / n_units:.1f}")
    for name, times in seconds.items():
        print(f"{name:<60}{1000 * sum(times) / n_units:>9.1f}{len(times):>8} calls")


def _add_timer(owner: Any, name: str) -> list[float]:
    """Make a function note the processor time that its thread needs for each call."""
    times: list[float] = []
    function = getattr(owner, name)

    def timed(*args: Any, **options: Any) -> Any:
        start = time.thread_time()
        try:
            return function(*args, **options)
        finally:
            times.append(time.thread_time() - start)

    setattr(owner, name, timed)
    return times


def _measure(method: Callable[[], object], device: str) -> tuple[float, float]:
    before = _reset_peak(device)
    start = time.perf_counter()
    method()
    _synchronise(device)
    return time.perf_counter() - start, (torch.cuda.max_memory_allocated() - before) if device != "cpu" else 0.0


def _reset_peak(device: str) -> int:
    if device == "cpu":
        return 0
    _synchronise(device)
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()


def _synchronise(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def _plain_forward(encoder: HuggingFaceEncoder, batch: ModelInputs, implementation: str = "sdpa") -> None:
    with _AttentionImplementation(encoder.model, implementation), torch.inference_mode():
        encoder.model(
            input_ids=batch.input_ids, token_type_ids=batch.token_type_ids
        )  # no padding, so the fastest pass has no mask


def _plain_from_texts(encoder: HuggingFaceEncoder, corpus: Corpus, tokens: int) -> None:
    texts = [sentence.text for sentence in corpus.sentences]
    inputs = encoder.hf_tokenizer(texts, truncation=True, max_length=tokens, padding=True, return_tensors="pt")
    with _AttentionImplementation(encoder.model, "sdpa"), torch.inference_mode():
        encoder.model(**inputs.to(encoder.device))


def _attention_on_cpu(encoder: HuggingFaceEncoder, batch: ModelInputs) -> Sequence[torch.Tensor]:
    with _AttentionImplementation(encoder.model, "eager"), torch.inference_mode():
        output = encoder.model(
            input_ids=batch.input_ids,
            attention_mask=batch.attention_mask,
            token_type_ids=batch.token_type_ids,
            output_attentions=True,
        )
        return [attention.cpu() for attention in output.attentions]


class _AttentionImplementation:
    """Context manager that sets the attention implementation of a transformers model."""

    def __init__(self, model: Any, name: str) -> None:
        self.model, self.name = model, name

    def __enter__(self) -> None:
        self.before = self.model.config._attn_implementation
        self.model.config._attn_implementation = self.name

    def __exit__(self, *_: object) -> None:
        self.model.config._attn_implementation = self.before


def _print_profile(method: Callable[[], object], device: str) -> None:
    method()
    _synchronise(device)
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities if device != "cpu" else activities[:1]) as profile:
        method()
        _synchronise(device)
    sort_key = "self_cuda_time_total" if device != "cpu" else "self_cpu_time_total"
    print(profile.key_averages().table(sort_by=sort_key, row_limit=25, max_name_column_width=60))


def _device_name(device: str) -> str:
    return torch.cuda.get_device_name() if device != "cpu" else "a CPU"


if __name__ == "__main__":
    main()
