"""Evaluate a model on a labelled corpus: loss and score per example, for the intact model or with parts removed.

A model with a task head is evaluated on that task; a masked language model on predicting masked tokens. No weights
change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, cast

import numpy as np

from bertology.analyses.evaluation.score_change import Scores, reference_score
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.encoder.encoder import Encoder, ModelInputs, ModelOutput, TaskEncoder
from bertology.encoder.task_heads import label_ids
from bertology.encoder.token_batch import RecordedInput, TokenBatch
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.estimates.metrics import Counts
from bertology.lazy import torch
from bertology.recording.objectives import masked_indices, masked_logits, masked_losses, masked_positions
from bertology.recording.overflow import LONG_SKIPPED, ExampleOverflow, count_unusable, fit_examples
from bertology.results.measured_shape import ReferenceScore
from bertology.training.data_split import sort_by_content
from bertology.training.encoded_examples import EncodedDataset, EncodedExample, pad_examples
from bertology.training.task_selection import REQUIREMENTS, TaskName, select_examples
from bertology.training.tasks.multiple_choice import MultipleChoice
from bertology.training.tasks.question_answering import QuestionAnswering
from bertology.training.tasks.task import ScorableTask
from bertology.training.tasks.text_classification import TextClassification
from bertology.training.tasks.token_classification import TokenClassification
from bertology.training.trainable_model import flatten_options

if TYPE_CHECKING:
    from torch import Tensor

MLM = "mlm"
MLM_METRIC = "accuracy on masked tokens"
MOST_FREQUENT = "the most frequent masked token"
BATCH_SIZE = 32
"""Examples per batch."""
TASKS_BY_TASK_HEAD: dict[str, tuple[TaskName, ...]] = {
    "label": ("sentence", "pair"),
    "token": ("token",),
    "answer_start": ("qa",),
    "choice": ("choice",),
}
"""The tasks that a model with a task head can be evaluated on."""
TASK_DESCRIPTIONS = {
    "sentence": "text classification",
    "pair": "text pair classification",
    "token": "token classification",
    "qa": "question answering",
    "choice": "multiple choice",
}

Forward = Callable[[ModelInputs], ModelOutput]
"""A forward pass: `encoder.forward` of an intact or changed model."""


@dataclass(frozen=True, eq=False)
class EvaluationBatch:
    """A padded batch and the functions that score the model's output on it.

    `examples` are indices into the examples of the evaluation. One example can take several rows (the options of a
    multiple-choice question, the windows of a long text): `example_of_row` maps rows to indices into `examples`.
    `loss` and `score` read the logits of one `task_head` (start and end of an answer count as one), and only those at
    `read_positions` (row, k), if given.
    """

    inputs: ModelInputs
    examples: list[int]
    example_of_row: list[int]
    loss: Callable[[ModelOutput], Tensor]
    """Nats per example, differentiable."""
    score: Callable[[ModelOutput], Counts]
    """Correct and total per example."""
    task_head: str
    read_positions: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A task prepared for one encoder; run it as often as there are variants of the encoder."""

    task: str
    metric: str
    examples: tuple[Example, ...]
    batches: tuple[EvaluationBatch, ...]
    skipped: int
    """Examples that are too long, or not annotated for the task."""
    baseline_counts: Counts | None = None
    """Score of predictions that need no model, such as always the most frequent label, or masked token."""
    baseline_name: str = ""
    long_examples: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many examples were too long, and skipped, truncated or split into windows."""
    numbered_labels: Mapping[str, int] = field(default_factory=dict[str, int])
    """Examples by gold label and class, such as `0 (class negative)`, if the label is the number of a class."""

    def sample(self) -> dict[str, int]:
        """The number of examples, of those skipped or cut, and of those whose label is the number of a class."""
        numbered = {f"examples labelled {label}": count for label, count in self.numbered_labels.items()}
        return {"examples": len(self.examples), "skipped examples": self.skipped, **self.long_examples, **numbered}

    @property
    def majority(self) -> Counts | None:
        """Score of always predicting the most frequent label; None for masked language modelling."""
        return None if self.task == MLM else self.baseline_counts

    def reference(self, scores: Scores, *, seed: int, name: str = "the intact model") -> ReferenceScore | None:
        """The score that interventions are compared with, beside the baseline on the same examples."""
        if self.baseline_counts is None:
            return None
        reference = reference_score(name, [scores.counts], self.baseline_name, self.baseline_counts, seed)
        return reference.model_copy(update={"metric": self.metric})

    def scores(self, forward: Forward) -> Scores:
        """Loss and score of every example, in order."""
        losses, correct, total = (np.zeros(len(self.examples)) for _ in range(3))
        with torch.no_grad():
            for batch in self.batches:
                output = forward(batch.inputs)
                counts = batch.score(output)
                losses[batch.examples] = batch.loss(output).double().cpu().numpy()
                correct[batch.examples], total[batch.examples] = counts.correct, counts.total
        return Scores(losses, Counts(correct, total))


def prepare_evaluation(
    encoder: Encoder,
    corpus: Corpus,
    *,
    task: str = "auto",
    label: str = "",
    sample_size: int = 0,
    seed: int = 0,
    overflow: ExampleOverflow = "auto",
) -> Evaluation:
    """Prepare an evaluation on the examples of a corpus, or a sample of them that depends on their content only.

    The task `auto` is that of the model's task head; for `mlm`, 15 % of the tokens are masked, depending on the
    tokens and the seed. Examples that are too long count as part of the sample.
    """
    if label in corpus.label_names.examples:
        corpus = corpus.with_label(label)
    name = infer_evaluation_task(encoder, corpus) if task == "auto" else task
    if not _supports_task(encoder, name):
        description = TASK_DESCRIPTIONS.get(name)
        raise Refusal(
            f"{encoder.name} has no task head for --task {name} ({_task_head_list(encoder)})",
            f"a model fine-tuned for {description}" if description else "a masked language model",
            f"Fine-tune one with `bertology finetune --task {name}`, or choose another --task"
            if description
            else "Choose another model or --task",
        )
    if name == MLM:
        examples, counts = fit_examples(encoder, _sample_examples(corpus.examples, sample_size), overflow)
        return _with_long_examples(_evaluate_mlm(encoder, examples, seed), counts)
    usable, _ = select_examples(corpus, name, label or (_default_annotation(corpus) if name == "token" else None))
    task_encoder = cast(TaskEncoder, encoder)
    labels = _task_labels(task_encoder, name)
    sample = _sample_examples(usable.examples, sample_size)
    fitted, counts = fit_examples(encoder, sample, overflow, keep_end=name == "sentence")
    examples = _map_labels(labels, fitted, name, encoder.name)
    evaluation = _evaluate_task_head(encoder, name, labels, examples, len(corpus) - len(usable))
    numbered = _numbered_labels(labels, fitted) if name in ("sentence", "pair") else {}
    return replace(_with_long_examples(evaluation, counts), numbered_labels=numbered)


def with_perturbed_examples(
    encoder: Encoder, evaluation: Evaluation, examples: Sequence[Example], *, seed: int = 0
) -> Evaluation:
    """The same task on other examples, such as perturbed ones, without selecting: a segment may be empty."""
    if evaluation.task == MLM:
        return _evaluate_mlm(encoder, examples, seed)
    labels = _task_labels(cast(TaskEncoder, encoder), evaluation.task)
    return _evaluate_task_head(encoder, evaluation.task, labels, examples, 0)


def infer_evaluation_task(encoder: Encoder, corpus: Corpus) -> str:
    """The task of the model's task head, if most of the corpus is annotated for it, else masked language modelling."""
    for task_head, tasks in TASKS_BY_TASK_HEAD.items():
        for name in tasks if task_head in encoder.task_heads else ():
            if name == "token" or 2 * sum(map(REQUIREMENTS[name].is_met, corpus)) > len(corpus):
                return name
    if _supports_task(encoder, MLM):
        return MLM
    raise Refusal(
        _missing_annotation(encoder, corpus),
        "a model fine-tuned for a task annotated in the corpus, or a masked language model",
        "Fine-tune one with `bertology finetune`, or choose another model or corpus",
    )


def scorable_task(name: str, labels: tuple[str, ...]) -> ScorableTask:
    """The task of this name with these labels; gold tags are read from the annotation `tags`."""
    match name:
        case "sentence" | "pair":
            return TextClassification(name, labels)
        case "token":
            return TokenClassification(labels, "tags")
        case "qa":
            return QuestionAnswering(allow_no_answer=False)
        case _:
            return MultipleChoice()


def _supports_task(encoder: Encoder, task: str) -> bool:
    if task == MLM:
        return MLM in encoder.task_heads and encoder.mask_token_id is not None
    return any(task in tasks for task_head, tasks in TASKS_BY_TASK_HEAD.items() if task_head in encoder.task_heads)


def _missing_annotation(encoder: Encoder, corpus: Corpus) -> str:
    tasks = [task for head, tasks in TASKS_BY_TASK_HEAD.items() if head in encoder.task_heads for task in tasks]
    if not tasks:
        return f"{encoder.name} has no task head to evaluate"
    described = " or ".join(TASK_DESCRIPTIONS[task] for task in tasks)
    return f"{encoder.name} is a model for {described}, and {corpus.name} is not annotated for that"


def _task_head_list(encoder: Encoder) -> str:
    names = ", ".join(sorted(encoder.task_heads))
    return f"it has: {names}" if names else "it has no task head"


def _task_labels(encoder: TaskEncoder, task: str) -> tuple[str, ...]:
    return encoder.labels if task in ("sentence", "pair", "token") else ()


def _default_annotation(corpus: Corpus) -> str | None:
    """Entities if there are no other tags: most taggers are trained on them."""
    return "entities" if corpus.annotations["entities"] and not corpus.annotations["tags"] else None


def _sample_examples(examples: Sequence[Example], sample_size: int) -> list[Example]:
    return sort_by_content(examples)[:sample_size] if sample_size else list(examples)


def _map_labels(labels: tuple[str, ...], examples: Sequence[Example], task: str, model_name: str) -> list[Example]:
    """The examples with their gold labels spelt as in the model's configuration, matched by name or class number."""
    if task == "token":
        return [_map_tags(labels, example) for example in examples]
    if task not in ("sentence", "pair"):
        return list(examples)
    ids = label_ids(labels, [example.label for example in examples], model_name)
    return [replace(example, label=labels[i]) for example, i in zip(examples, ids, strict=True)]


def _numbered_labels(labels: tuple[str, ...], examples: Sequence[Example]) -> dict[str, int]:
    """How many examples have a gold label that is the number of a class and not its name, by label and class."""
    names = {label.lower() for label in labels}
    counts = Counter(str(example.label) for example in examples)
    return {f"{gold} (class {labels[int(gold)]})": counts[gold] for gold in sorted(counts) if gold.lower() not in names}


def _with_long_examples(evaluation: Evaluation, counts: Mapping[str, int]) -> Evaluation:
    """The evaluation with the examples that were skipped or truncated before it was prepared."""
    total = Counter(evaluation.long_examples) + Counter(counts)
    return replace(evaluation, long_examples=total, skipped=evaluation.skipped + counts.get(LONG_SKIPPED, 0))


def _map_tags(labels: tuple[str, ...], example: Example) -> Example:
    """The example with O instead of tags that the model does not have."""
    sentence = example.segments[0]
    outside = "O" if "O" in labels else ""
    tags = tuple(tag if tag in labels else outside or tag for tag in sentence.tags or ())
    return replace(example, segments=(replace(sentence, tags=tags), *example.segments[1:]))


def _evaluate_task_head(
    encoder: Encoder, task_name: str, labels: tuple[str, ...], examples: Sequence[Example], skipped: int
) -> Evaluation:
    task = scorable_task(task_name, labels)
    dataset = task.encode(examples, encoder.tokenise, max_length=encoder.max_length)
    if not dataset.encoded:
        raise _too_long_refusal(len(examples), encoder)
    baseline = next(iter(task.baseline_predictions(dataset.examples, dataset.examples).items()))
    n_skipped = len(examples) - len(dataset.examples)
    long_examples = count_unusable(task_name, n_skipped, dataset.n_truncated - n_skipped)
    task_head = next(name for name, tasks in TASKS_BY_TASK_HEAD.items() if task_name in tasks)
    return Evaluation(
        task_name,
        task.metric,
        tuple(dataset.examples),
        tuple(_task_batches(task, dataset, task_head, encoder.device)),
        skipped + n_skipped,
        task.count_correct(dataset.examples, baseline[1]),
        baseline[0],
        {name: count for name, count in long_examples.items() if count},
    )


def _task_batches(
    task: ScorableTask, dataset: EncodedDataset, task_head: str, device: str
) -> Iterator[EvaluationBatch]:
    """Batches of examples of similar length; all rows of an example are in one batch."""
    rows_by_example = [list(rows) for _, rows in groupby(dataset.encoded, key=lambda row: row.example_index)]
    by_length = sorted(range(len(rows_by_example)), key=lambda index: len(rows_by_example[index][0]))
    for start in range(0, len(by_length), BATCH_SIZE):
        indices = by_length[start : start + BATCH_SIZE]
        examples, encoded = [dataset.examples[i] for i in indices], [rows_by_example[i] for i in indices]
        yield _task_batch(task, examples, indices, encoded, task_head, device)


def _task_batch(
    task: ScorableTask,
    examples: list[Example],
    indices: list[int],
    encoded: Sequence[Sequence[EncodedExample]],
    task_head: str,
    device: str,
) -> EvaluationBatch:
    flat = [replace(row, example_index=index) for index, rows in enumerate(encoded) for row in rows]
    padded, dataset = pad_examples(flat, list(range(len(flat)))), EncodedDataset(examples, flat, 0)
    example_of_row = torch.tensor([row.example_index for row in flat])
    weights = (example_of_row[None, :] == torch.arange(len(examples))[:, None]).float()
    weights /= weights.sum(1, keepdim=True)

    def loss(output: ModelOutput) -> Tensor:
        row_losses = task.example_losses(output, padded)
        return weights.to(row_losses) @ row_losses

    def score(output: ModelOutput) -> Counts:
        return task.count_correct(examples, task.decode([(padded, output)], dataset))

    inputs = flatten_options(padded.inputs, device)
    n_options = len(inputs.input_ids) // len(flat)
    return EvaluationBatch(
        inputs, indices, [row.example_index for row in flat for _ in range(n_options)], loss, score, task_head
    )


def _evaluate_mlm(encoder: Encoder, examples: Sequence[Example], seed: int) -> Evaluation:
    """Mask 15 % of the tokens of each text; a prediction is the most probable token."""
    texts = [(example, text) for example in examples for text in example.text_inputs]
    tokenised = encoder.tokenise([text for _, text in texts])
    inputs = [
        RecordedInput(index, 0, 0, text, tokens)
        for index, ((_, text), tokens) in enumerate(zip(texts, tokenised, strict=True))
        if len(tokens) <= encoder.max_length and (tokens.special_kinds == SpecialToken.NONE).any()
    ]
    if not inputs:
        raise _too_long_refusal(len(texts), encoder)
    batches: list[EvaluationBatch] = []
    gold_tokens: list[list[int]] = [[] for _ in inputs]
    by_length = sorted(range(len(inputs)), key=lambda index: len(inputs[index].tokens))
    for start in range(0, len(inputs), BATCH_SIZE):
        indices = by_length[start : start + BATCH_SIZE]
        token_batch = TokenBatch([inputs[index] for index in indices], encoder.device)
        mlm_mask = masked_positions(token_batch, seed)
        batches.append(_mlm_batch(encoder, token_batch, indices, mlm_mask))
        for index, token_ids, row_mask in zip(indices, token_batch.model_inputs.input_ids, mlm_mask, strict=True):
            gold_tokens[index] = token_ids[row_mask].tolist()
    evaluated = tuple(texts[recorded.example_index][0] for recorded in inputs)
    baseline = _count_most_frequent(gold_tokens)
    n_skipped, n_long = len(texts) - len(inputs), sum(len(tokens) > encoder.max_length for tokens in tokenised)
    long_examples = {LONG_SKIPPED: n_long} if n_long else dict[str, int]()
    return Evaluation(MLM, MLM_METRIC, evaluated, tuple(batches), n_skipped, baseline, MOST_FREQUENT, long_examples)


def _count_most_frequent(gold_tokens: Sequence[Sequence[int]]) -> Counts:
    """Counts of always predicting the token that is masked most often."""
    ((token, _),) = Counter(token for tokens in gold_tokens for token in tokens).most_common(1)
    correct, total = zip(*((tokens.count(token), len(tokens)) for tokens in gold_tokens), strict=True)
    return Counts(np.array(correct, np.float64), np.array(total, np.float64))


def _mlm_batch(encoder: Encoder, token_batch: TokenBatch, indices: list[int], mlm_mask: Tensor) -> EvaluationBatch:
    assert encoder.mask_token_id is not None, "a masked language model has a mask token"
    token_ids = token_batch.model_inputs.input_ids
    inputs = replace(token_batch.model_inputs, input_ids=torch.where(mlm_mask, encoder.mask_token_id, token_ids))

    def loss(output: ModelOutput) -> Tensor:
        return masked_losses(token_batch, output, mlm_mask) / mlm_mask.sum(1)

    def score(output: ModelOutput) -> Counts:
        is_correct = masked_logits(output, mlm_mask).argmax(-1) == token_ids[mlm_mask]
        correct = torch.zeros_like(mlm_mask).masked_scatter(mlm_mask, is_correct)
        return Counts(*(flags.sum(1).double().cpu().numpy() for flags in (correct, mlm_mask)))

    return EvaluationBatch(inputs, indices, list(range(len(indices))), loss, score, MLM, masked_indices(mlm_mask))


def _too_long_refusal(n_examples: int, encoder: Encoder) -> Refusal:
    return Refusal(
        f"None of {n_examples} examples fits into the {encoder.max_length} tokens that {encoder.name} takes",
        "examples that are not longer than the model's maximum input",
        "Choose a model that takes longer inputs, or shorten the texts",
    )
