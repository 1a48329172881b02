"""Every option of every command and analysis: any text is refused in one paragraph, or accepted; never a traceback."""

from __future__ import annotations

import functools
import inspect
import io
import math
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

import bertology as package
from bertology.analyses import registry
from bertology.analyses.declaration import Analysis, Option
from bertology.cli import main
from bertology.cli.options import expand_option_groups
from bertology.errors import Refusal
from bertology.number_ranges import NumberRange, range_of_hint
from command import CommandResult, bertology

HOSTILE = ("nan", "-nan", "inf", "-inf", "1e999", "-1", "0", "1", "0.5", "-0.5", "9" * 20, "9" * 5000, "²", "٣", "1_0",
           "", " ", "x", "0x10", "True", "1e-400", "-" + "9" * 400, "1,2", "a\nb", "x" * 300)  # fmt: skip
TEXTS = st.one_of(
    st.sampled_from(HOSTILE),
    st.integers().map(str),
    st.floats().map(str),
    st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=20),
)
ANALYSIS_OPTIONS = [(analysis, option) for analysis in registry.load_all() for option in analysis.options.values()]
REQUIRED = {
    "record": ["tiny", "english", "--sites", "hidden", "-o", "out"],
    "finetune": ["tiny", "english", "--task", "token", "-o", "out"],
    "prune": ["tiny", "--heads", "1-1", "-o", "out"],
    "atlas": ["tiny"],
    "new": ["analysis", "attention/x"],
    "run": ["attention/entropy"],
}
"""Arguments that a command needs."""


def _command_options() -> list[tuple[str, str]]:
    """Every command with the flag of each of its options that takes a value."""
    group: Any = typer.main.get_command(main.app)
    return [
        (name, flag)
        for name, command in group.commands.items()
        for parameter in command.params
        for flag in parameter.opts
        if flag.startswith("--") and not parameter.is_flag and flag != "--help"
    ]


COMMAND_OPTIONS = _command_options()


def _accepting(command: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(command)
    def accept(**_: Any) -> None:
        typer.echo("accepted")

    return accept


@functools.cache
def _idle_app() -> typer.Typer:
    """The command line whose commands do nothing once their options are accepted."""
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    for name, (command, _) in main.COMMANDS.items():
        app.command(name, context_settings=main.run.CONTEXT if name == "run" else None)(
            expand_option_groups(_accepting(command))
        )
    return app


def run_idle(*arguments: str) -> CommandResult:
    out, err = io.StringIO(), io.StringIO()
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        patch("sys.argv", ["bertology", *arguments]),
        patch.object(main, "app", _idle_app()),
        pytest.raises(SystemExit) as stop,
    ):
        main.main()
    return CommandResult(int(stop.value.code or 0), out.getvalue(), err.getvalue())


def assert_refused_or_accepted(completed: CommandResult) -> None:
    if completed.status == 0:
        assert completed.out == "accepted\n"
    else:
        assert completed.status == 2 and completed.err.startswith("bertology: ")
        assert completed.err.count("\n") == 1 and "Traceback" not in completed.err
        assert len(completed.err) < 8000


@given(st.sampled_from(COMMAND_OPTIONS), TEXTS)
def test_any_value_of_an_option_of_a_command_is_refused_or_accepted(option: tuple[str, str], text: str) -> None:
    command, flag = option
    assert_refused_or_accepted(run_idle(command, *REQUIRED.get(command, []), f"{flag}={text}"))


def _command_numbers() -> list[tuple[str, str, NumberRange]]:
    """Every command with the flag and the range of each of its numbers."""
    numbers: list[tuple[str, str, NumberRange]] = []
    for command, flag in COMMAND_OPTIONS:
        parameters = inspect.signature(expand_option_groups(main.COMMANDS[command][0])).parameters
        number = parameters.get(flag.removeprefix("--").replace("-", "_"))
        bounds = None if number is None else range_of_hint(number.annotation, number.default)
        numbers += [] if bounds is None else [(command, flag, bounds)]
    return numbers


@pytest.mark.parametrize(("command", "flag", "bounds"), _command_numbers())
def test_no_number_of_a_command_accepts_what_is_not_finite(command: str, flag: str, bounds: NumberRange) -> None:
    assert math.isfinite(bounds.minimum) and math.isfinite(bounds.maximum), "needs a range"
    for text in ("nan", "inf", "-inf", "9" * 30, f"-{'9' * 30}"):
        completed = run_idle(command, *REQUIRED.get(command, []), f"{flag}={text}")
        assert completed.status == 2, (flag, text)
    assert bounds.help_text.strip() in " ".join(bertology(command, "--help").out.split()), "the help says the range"


@given(st.sampled_from(ANALYSIS_OPTIONS), TEXTS)
def test_any_value_of_an_option_of_an_analysis_is_refused_or_accepted(pair: tuple[Analysis, Option], text: str) -> None:
    analysis, option = pair
    try:
        value = option.validate(option.parse(text))
    except Refusal as refusal:
        assert "\n" not in str(refusal)
    else:
        assert analysis.resolve_options({option.name: value})[option.name] == value


@pytest.mark.parametrize(("analysis", "option"), ANALYSIS_OPTIONS, ids=lambda value: value.name)
def test_every_number_of_an_analysis_has_a_range(analysis: Analysis, option: Option) -> None:
    if option.range is None:
        assert not isinstance(option.default, int | float) or isinstance(option.default, bool)
        return
    assert math.isfinite(option.range.minimum) and math.isfinite(option.range.maximum), "declare Interval(...)"
    analysis.resolve_options({})  # the default is in the range
    for value in (math.nan, math.inf, -math.inf, 10**30, -(10**30)):
        with pytest.raises(Refusal):
            analysis.resolve_options({option.name: value})


def test_an_option_is_refused_before_any_model_is_loaded(tmp_path: Path) -> None:
    arguments = ("--model", str(tmp_path / "no model"), "--corpus", str(tmp_path / "no corpus"))
    refused = bertology("run", "attention/rollout", *arguments, "--residual-weight", "nan")
    assert refused.status == 2 and "--residual-weight was given nan" in refused.err
    with pytest.raises(Refusal, match="--residual-weight was given nan"):
        package.run("attention/rollout", "no model", ["A text."], residual_weight=math.nan)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("run", "attention/entropy", "-m", "random:tiny@99999999999999999999"),
            "The seed of tiny is 99999999999999999",
        ),
        (("run", "attention/entropy", "-m", "random-vectors:²"), "is not a vector size"),
        (("run", "attention/entropy", "-m", "x" * 300), "of 300 bytes"),
        (("run", "attention/entropy", "-m", "tiny", "-c", "x/" + "y" * 300), "does not exist"),
        (("run", "attention/entropy", "--recording", "x" * 300), "of 300 bytes"),
        (("run", "attention/entropy", "-m", "~nobody-of-this-name/x"), "no such directory"),
        (("report", "tiny", "-o", "x" * 300 + ".html"), "of 305 bytes"),
        (("run", "probes/word", "-m", "tiny", "--probe", "mlp:²"), "no probe called"),
        (("run", "probes/word", "-m", "tiny", "--probe", "mlp:" + "9" * 30), "at most 65,536"),
        (("run", "probes/word", "-m", "tiny", "--n-seeds", "9" * 21), "from 1 to 10,000"),
    ],
)
def test_known_offenders_are_refused(arguments: tuple[str, ...], message: str) -> None:
    completed = bertology(*arguments)
    assert completed.status == 2 and message in completed.err and "Traceback" not in completed.err, completed
