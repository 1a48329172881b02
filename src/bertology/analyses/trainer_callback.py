"""`AnalysisCallback`: run analyses on a model while the Trainer of transformers trains it, and log their numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from bertology.analyses.run_by_name import named_requests, run
from bertology.arrays import FloatArray
from bertology.atomic_files import write_atomically
from bertology.corpus.read import as_corpus
from bertology.encoder.trainer import (
    TrainerCallback,
    encoder_in_training,
    refuse_tokenizer_missing,
    unchanged_random_state,
)
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.number_ranges import COUNT
from bertology.public_functions import public_function
from bertology.recording.plan import RecordingConfig
from bertology.results.result import Result
from bertology.results.results import Results
from bertology.results.shapes import HeadGrid, LayerCurve, Shape, Table

if TYPE_CHECKING:
    import pandas

PREFIX = "bertology"
Scalars = Literal["mean", "layers"]


class AnalysisCallback(TrainerCallback):
    """Analyse a model every `every` steps of its training, on the same corpus each time.

        trainer = transformers.Trainer(model, ...)
        callback = bertology.AnalysisCallback(trainer, ["attention/entropy"], corpus, every=100)
        trainer.add_callback(callback)
        trainer.train()
        callback.to_pandas()

    Analyses run before the first step, every `every` steps and after the last step. Weights are shared and neither the
    model's mode, its gradients nor any random state changes: training goes on as without the callback. The mean of
    every measure over heads or layers, and every row of a table, is logged by `trainer.log`, thus by all loggers of the
    Trainer, under `bertology/ANALYSIS/MEASURE`; with `scalars="layers"` also the mean of each layer, `.../layer 3`.
    `results` has the complete results by step; with a `directory` they are also written there, as JSON.

    `options` are those of the analyses. The untrained model does not change in training: add
    `random_baseline=True` to have this baseline in every result, at the cost of a second forward pass.
    """

    @public_function
    def __init__(
        self,
        trainer: Any,
        analyses: str | Sequence[str],
        corpus: Any,
        *,
        every: Annotated[int, COUNT] = 500,
        tokenizer: Any = None,
        scalars: Scalars = "mean",
        directory: str | Path | None = None,
        random_baseline: bool = False,
        config: RecordingConfig | None = None,
        **options: Any,
    ) -> None:
        if not callable(getattr(trainer, "log", None)) or not callable(getattr(trainer, "add_callback", None)):
            raise Refusal(
                f"A Trainer was given as {type(trainer).__name__}",
                "a transformers.Trainer, whose loggers get the numbers",
                "Build the Trainer first: AnalysisCallback(trainer, analyses, corpus), then trainer.add_callback(...)",
            )
        names = [analyses] if isinstance(analyses, str) else list(analyses)
        for analysis, own_options in named_requests(names, options):
            analysis.resolve_options(own_options)
        self.trainer = trainer
        self.analyses = names
        self.corpus = as_corpus(corpus)
        self.every = every
        self.scalars: Scalars = scalars
        self.directory = None if directory is None else Path(directory)
        self.results: dict[int, Results[Result]] = {}
        self._tokenizer = tokenizer
        self._run_options: dict[str, Any] = {"random_baseline": random_baseline, "config": config, **options}

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Analyse the model before the first step; what cannot run is refused here."""
        self._analyse(state, control)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Analyse the model if it is due."""
        if state.global_step % self.every == 0 or state.global_step >= state.max_steps or control.should_training_stop:
            self._analyse(state, control)

    def to_pandas(self) -> pandas.DataFrame:
        """All numbers of all steps as one data frame: the columns of `Results.to_pandas`, after `step`."""
        import pandas

        frames: list[Any] = []
        for step, results in self.results.items():
            frame = results.to_pandas()
            frame.insert(0, "step", step)
            frames.append(frame)
        return pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()

    def _analyse(self, state: Any, control: Any) -> None:
        step = int(state.global_step)
        if step in self.results or not state.is_world_process_zero:
            return
        tokenizer = self._tokenizer if self._tokenizer is not None else self.trainer.processing_class
        refuse_tokenizer_missing(tokenizer)
        with unchanged_random_state():
            encoder = encoder_in_training(self.trainer.model, tokenizer)
            results = run(self.analyses, encoder, self.corpus, **self._run_options)
        self.results[step] = results
        if self.directory is not None:
            self.directory.mkdir(parents=True, exist_ok=True)
            content = json.dumps({"step": step, **results.to_json()}, ensure_ascii=False)
            write_atomically(self.directory / f"step-{step}.json", content.encode())
        numbers: dict[str, float] = {}
        for name, result in results.items():
            scalars = summary_scalars(result.data, self.scalars)
            numbers |= {f"{PREFIX}/{name}/{key}": value for key, value in scalars.items()}
        should_log = control.should_log
        self.trainer.log(numbers)
        # The Trainer takes a call of its log for its own and would leave out the loss of this step.
        control.should_log = should_log


def summary_scalars(data: Shape, scalars: Scalars) -> dict[str, float]:
    """One number for each measure: the mean over heads or layers, by layer too if asked for; of a table, every row.

    Missing values are left out.
    """
    measures: Mapping[str, Estimates] = getattr(data, "measures", {})
    numbers: dict[str, float] = {}
    for name, estimates in measures.items():
        rows = dict(enumerate(estimates.value.reshape(len(estimates.value), -1)))
        if not isinstance(data, Table):
            numbers[name] = _mean(estimates.value)
        if isinstance(data, Table):
            numbers |= {f"{name}/{data.row_names[i]}": _mean(row) for i, row in rows.items()}
        elif scalars == "layers" and isinstance(data, HeadGrid | LayerCurve):
            first = data.first_layer if isinstance(data, LayerCurve) else 1
            numbers |= {f"{name}/layer {first + i}": _mean(row) for i, row in rows.items()}
    return {name: value for name, value in numbers.items() if np.isfinite(value)}


def _mean(values: FloatArray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else float("nan")
