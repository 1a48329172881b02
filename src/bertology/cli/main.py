"""The `bertology` command: stdout is data, stderr is talk; exit 0 done, 2 the user's mistake, 130 interrupted."""

from __future__ import annotations

import os
import sys

import typer

from bertology.cli import claims, finetune, listing, new, prune, record, report, run, view
from bertology.errors import Refusal

INTERRUPTED = 130
STOPPED = "bertology: stopped; what was finished is kept, and the same command goes on from there"

app = typer.Typer(
    name="bertology",
    help="Every classic finding about what BERT looks at and what it knows, re-run on your encoder.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("report", help=report.HELP)(report.report)
app.command("claims", help=claims.HELP)(claims.claims)
app.command("view", help=view.HELP)(view.view)
app.command("run", help=run.HELP, context_settings=run.CONTEXT)(run.run)
app.command("record", help=record.HELP)(record.record)
app.command("finetune", help=finetune.HELP)(finetune.finetune)
app.command("prune", help=prune.HELP)(prune.prune)
app.command("list", help=listing.HELP)(listing.listing)
app.command("new", help=new.HELP)(new.new)


def version(asked: bool) -> None:
    """Print the version and stop."""
    if asked:
        from bertology import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(False, "--version", callback=version, is_eager=True, help="Print the version."),
) -> None:
    """Every classic finding about what BERT looks at and what it knows, re-run on your encoder."""


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
        _stop(f"bertology: {str(mistake).rstrip('.')}. See `bertology --help`.", 2)
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(141) from None
    else:
        if status == INTERRUPTED:  # newer versions of typer turn an interrupt into this status
            _stop(STOPPED, INTERRUPTED)
        raise SystemExit(status or 0)


def _stop(message: str, status: int) -> None:
    typer.echo(message, err=True)
    raise SystemExit(status)
