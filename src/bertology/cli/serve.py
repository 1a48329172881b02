"""`bertology serve`: a live workbench in the browser."""

from __future__ import annotations

from typing import Annotated

import typer
from annotated_types import Interval

from bertology.cli import options
from bertology.cli.claims import DEFAULT_AGAINST
from bertology.cli.completion import complete_model
from bertology.errors import Refusal
from bertology.store_paths import local_folder

HELP = "Serve a live workbench for one sentence, one head, one hypothesis; it opens in the browser."
DEFAULT_PORT = 8000


def serve_command(
    model: Annotated[
        str | None,
        typer.Argument(
            help="Model to look at (default: the built-in `mini`, compared with `mini-pairs`).",
            autocompletion=complete_model,
        ),
    ] = None,
    against: options.Against = None,
    corpus: options.CorpusName = None,
    port: Annotated[
        int, Interval(ge=0, le=65535), typer.Option(metavar="N", help="Port; 0: a free one.")
    ] = DEFAULT_PORT,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the browser.")] = False,
    host: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Address to listen on; any but this machine's own needs --token."),
    ] = "127.0.0.1",
    token: Annotated[
        str | None, typer.Option(metavar="TOKEN", help="Token of the address. [default: a random one]")
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL",
            autocompletion=complete_model,
            help="Further model that the page may load; may be repeated.",
        ),
    ] = None,
    allow_corpus: Annotated[
        list[str] | None,
        typer.Option(metavar="CORPUS", help="Further corpus that the page may use; may be repeated."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Name of a proxy before the server, as browsers send it; may be repeated."),
    ] = None,
    store: options.Store = None,
) -> None:
    """Print the address and serve until interrupted."""
    try:
        from bertology.server.serve import serve
    except ImportError as error:
        raise Refusal(
            f"{error.name or 'A package'} is not installed, which `bertology serve` needs",
            "the optional packages for the workbench",
            "Install them with: pip install 'bertology[serve]'",
        ) from error
    partner = DEFAULT_AGAINST if model is None and against is None else against
    directory = options.store_directory(store, no_store=False)
    assert directory is not None, "there is a default store"
    directory = local_folder(directory, "`bertology serve`, which keeps its jobs there,")
    serve(
        [model or options.DEFAULT_MODEL, *(allow or [])],
        [corpus or options.DEFAULT_CORPUS, *(allow_corpus or [])],
        against=partner,
        store=directory,
        host=host,
        port=port,
        token=token,
        allow_hosts=[name.lower() for name in allow_host or []],
        open_browser=open_browser,
        notify=options.print_message,
        announce=typer.echo,
    )
