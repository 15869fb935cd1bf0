"""The command line of edfa.

Names become objects in the commands; heavy imports stay inside them, so that ``edfa --help`` answers at once.
"""

import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from edfa import __version__
from edfa.commands.advise import advise
from edfa.commands.certify import certify, monitor
from edfa.commands.demo import demo
from edfa.commands.fit import fit
from edfa.commands.interview import interview, verify
from edfa.commands.serve import serve
from edfa.commands.study import study
from edfa.commands.tables import blanket, data, schema
from edfa.errors import EdfaError

__all__ = ["app"]

EXIT_CODES = "Exit codes: 0 done; 1 a fault in edfa; 2 wrong input; 3 the answer is no; 130 interrupted."
cli = typer.Typer(
    help=__doc__.splitlines()[0],
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"edfa {__version__}")
        raise typer.Exit


@cli.callback()
def main(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Which fact to ask a person next, what they can change, and when they may act."""


for command in (demo, schema, data, blanket, fit, interview, advise, certify, monitor, verify, serve):
    cli.command()(command)
cli.add_typer(study, name="study")


def app(arguments: Sequence[str] | None = None) -> None:
    """Run the command line with ``arguments`` (default: ``sys.argv``).

    An error is one line on standard error and an exit code; with ``--debug`` it is raised.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    try:
        cli([word for word in words if word != "--debug"], prog_name="edfa")
    except EdfaError as error:
        if debug:
            raise
        _fail(str(error), 2)
    except OSError as error:  # of files, disks and networks, which are never a fault in edfa
        if debug:
            raise
        place = "" if error.filename is None else f"{error.filename}: "
        _fail(f"{place}{error.strerror or error}", 2)
    except Exception as error:
        if debug:
            raise
        _fail(f"{type(error).__name__}: {error} (a fault in edfa; --debug shows where)".replace("\n", " "), 1)


def _fail(message: str, code: int) -> NoReturn:
    """Write an error to standard error and exit."""
    Console(stderr=True).print(f"[red]error:[/red] {escape(message)}", highlight=False, soft_wrap=True)
    raise SystemExit(code) from None
