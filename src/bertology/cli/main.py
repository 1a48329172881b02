"""The `bertology` command: stdout is data, stderr is talk; exit 0 done, 2 the user's mistake, 130 interrupted."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import typer

from bertology.cli import claims, finetune, listing, new, prune, record, report, run, view
from bertology.errors import Refusal

INTERRUPTED = 130
REMEDY = "Check its permissions, or choose another place"
STOPPED = "bertology: stopped; what was finished is kept, and the same command goes on from there"

app = typer.Typer(
    name="bertology",
    help="Every classic finding about what BERT looks at and what it knows, re-run on your encoder.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "report": (report.report, report.HELP),
    "claims": (claims.claims, claims.HELP),
    "view": (view.view, view.HELP),
    "run": (run.run, run.HELP),
    "record": (record.record, record.HELP),
    "finetune": (finetune.finetune, finetune.HELP),
    "prune": (prune.prune, prune.HELP),
    "list": (listing.listing, listing.HELP),
    "new": (new.new, new.HELP),
}
for name, (command, about) in COMMANDS.items():
    # What is said to be short is never cut: in a list of commands, half a sentence helps no one.
    app.command(name, help=about, short_help=about, context_settings=run.CONTEXT if name == "run" else None)(command)


def version(asked: bool) -> None:
    """Print the version and stop."""
    if asked:
        from bertology import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=version, is_eager=True, help="Print the version."),
) -> None:
    """Every classic finding about what BERT looks at and what it knows, re-run on your encoder."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


def main() -> None:
    """Run the command line."""
    # torch's CPU kernels are kept for every shape ever seen, and batches of text come in hundreds: memory would grow
    # with the corpus. Making them anew costs nothing that can be measured beside a forward pass.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "0")
    try:
        status = app(standalone_mode=False)
    except Refusal as refusal:
        _stop(f"bertology: {refusal}", 2)
    except (typer.Abort, KeyboardInterrupt):
        _stop(STOPPED, INTERRUPTED)
    except typer.TyperException as mistake:
        _stop(f"bertology: {_told(mistake)}", 2)
    except PermissionError as error:
        # Files are opened in many places, and all of them mean the same to the user.
        refusal = Refusal(f"{error.filename} may not be read or written", "a place that you may use", REMEDY)
        _stop(f"bertology: {refusal}", 2)
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(141) from None
    else:
        if status == INTERRUPTED:  # newer versions of typer turn an interrupt into this status
            _stop(STOPPED, INTERRUPTED)
        raise SystemExit(status or 0)


def _told(mistake: typer.TyperException) -> str:
    """What is wrong with which option, and where the right ones are listed."""
    found = mistake.format_message().replace("Value error, ", "").strip()
    command = next((word for word in sys.argv[1:] if word in COMMANDS), "")
    asked = f"bertology {command} --help" if command else "bertology --help"
    return f"{found if found.endswith(('.', '?')) else found + '.'} See `{asked}`."


def _stop(message: str, status: int) -> None:
    typer.echo(message, err=True)
    raise SystemExit(status)
