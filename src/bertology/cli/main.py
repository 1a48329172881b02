"""The `bertology` command: results on stdout, messages on stderr.

Exit status: 0 success, 1 a failure of the machine or of a part of the work, 2 a user's mistake, 130 interrupted, 143
terminated.
"""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import typer

from bertology.cli import (
    atlas,
    claims,
    doctor,
    finetune,
    list_command,
    new,
    prune,
    record,
    report,
    run,
    serve,
    store,
    view,
)
from bertology.cli.options import expand_option_groups
from bertology.errors import CostError, DamagedFileWarning, LoadWarning, Refusal, UnusedWorkerWarning
from bertology.library_settings import set_library_defaults
from bertology.machine_errors import find_machine_error

INTERRUPTED_STATUS = 130
PERMISSION_REMEDY = "Check its permissions, or choose another path"
INTERRUPTED_MESSAGE = "bertology: interrupted; finished parts are kept, and the same command resumes"
TERMINATED_STATUS = 128 + signal.SIGTERM
TERMINATED_MESSAGE = "bertology: terminated; finished parts are kept, and the same command resumes"

HELP = (
    "Re-run the classic findings about BERT (attention, probing, geometry, ablation) on any encoder, with baselines "
    "and intervals."
)

app = typer.Typer(
    name="bertology",
    help=HELP,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "report": (report.report_command, report.HELP),
    "claims": (claims.claims_command, claims.HELP),
    "atlas": (atlas.atlas_command, atlas.HELP),
    "view": (view.view_command, view.HELP),
    "serve": (serve.serve_command, serve.HELP),
    "run": (run.run_command, run.HELP),
    "record": (record.record_command, record.HELP),
    "finetune": (finetune.finetune_command, finetune.HELP),
    "prune": (prune.prune_command, prune.HELP),
    "list": (list_command.list_command, list_command.HELP),
    "store": (store.store_command, store.HELP),
    "doctor": (doctor.doctor_command, doctor.HELP),
    "new": (new.new_command, new.HELP),
}
for name, (command, summary) in COMMANDS.items():
    # The list of commands has the first sentence; without short_help, typer would cut it.
    first_sentence = summary.partition(". ")[0].rstrip(".") + "."
    settings = run.CONTEXT if name == "run" else None
    app.command(name, help=summary, short_help=first_sentence, context_settings=settings)(expand_option_groups(command))


def print_version(value: bool) -> None:
    """Print the version and exit."""
    if value:
        from bertology import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=print_version, is_eager=True, help="Print the version."),
) -> None:
    """Show the help if no command was given."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


def main() -> None:
    """Run the command line."""
    set_library_defaults()
    warnings.formatwarning = _format_warning
    try:
        with _raise_when_terminated():
            status = app(prog_name="bertology", standalone_mode=False)  # also for `python -m bertology`
    except _Terminated:
        _stop(TERMINATED_MESSAGE, TERMINATED_STATUS)
    except (typer.Abort, KeyboardInterrupt):
        _stop(INTERRUPTED_MESSAGE, INTERRUPTED_STATUS)
    except typer.TyperException as mistake:
        _stop(f"bertology: {_format_error(mistake)}", 2)
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(141) from None
    except Exception as error:
        _stop_with(error)
    else:
        if status == INTERRUPTED_STATUS:  # newer versions of typer turn an interrupt into this status
            _stop(INTERRUPTED_MESSAGE, INTERRUPTED_STATUS)
        raise SystemExit(status or 0)


def _stop_with(error: Exception) -> None:
    """Print what is wrong with the machine or with what was given; any other exception is a mistake of the program."""
    failure = find_machine_error(error)
    if failure is not None:
        _stop(f"bertology: {failure}", failure.status)
    if isinstance(error, PermissionError):
        # Files are opened in many places, and the cause is always the same.
        problem = f"{error.filename} cannot be read or written"
        error = Refusal(problem, "a path you have permission for", PERMISSION_REMEDY)
    if isinstance(error, Refusal | CostError):
        _stop(f"bertology: {error}", 2)
    raise error


class _Terminated(BaseException):
    """The process was asked to end (SIGTERM); like KeyboardInterrupt, nothing but `main` handles it."""


@contextmanager
def _raise_when_terminated() -> Generator[None]:
    """Raise an exception in this thread at SIGTERM, so that files are closed and half-written ones removed."""

    def raise_terminated(_number: int, _frame: object) -> None:
        raise _Terminated

    if threading.current_thread() is not threading.main_thread():  # no other thread may handle signals
        yield
        return
    previous = signal.signal(signal.SIGTERM, raise_terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _format_error(error: typer.TyperException) -> str:
    """The error message, with the command that lists the options."""
    message = error.format_message().replace("Value error, ", "").strip()
    command = next((word for word in sys.argv[1:] if word in COMMANDS), "")
    help_command = f"bertology {command} --help" if command else "bertology --help"
    return f"{message if message.endswith(('.', '?')) else message + '.'} See `{help_command}`."


_default_format_warning = warnings.formatwarning


def _format_warning(message: Warning | str, category: type[Warning], *location: Any, **line: Any) -> str:
    """Warnings for users as plain messages; others, which are for developers, with file and line."""
    if issubclass(category, LoadWarning | DamagedFileWarning | UnusedWorkerWarning):
        return f"bertology: {message}\n"
    return _default_format_warning(message, category, *location, **line)


def _stop(message: str, status: int) -> None:
    typer.echo(message, err=True)
    raise SystemExit(status)
