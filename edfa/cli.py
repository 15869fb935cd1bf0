"""The command line of edfa.

Names become objects in the commands; heavy imports stay inside them, so that ``edfa --help``
answers at once.
"""

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, NoReturn, TextIO

import typer
from rich.console import Console
from rich.markup import escape

from edfa import __version__
from edfa.commands.advise import advise
from edfa.commands.certify import certify, monitor
from edfa.commands.common import printable
from edfa.commands.demo import demo
from edfa.commands.examples import show_examples
from edfa.commands.fit import fit
from edfa.commands.interview import interview, verify
from edfa.commands.tables import blanket, data, schema
from edfa.errors import EdfaError

GROUP = "edfa.commands"  # entry points: a function or a typer.Typer with a name
EXIT_CODES = (
    "Exit codes: 0 done; 1 a fault in edfa; 2 wrong input; 3 the answer is no; 130 interrupted."
)
cli = typer.Typer(
    epilog=f"{show_examples('')}\n\n{EXIT_CODES}",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    """Print the version and end, if ``--version`` was given."""
    if wanted:
        typer.echo(f"edfa {__version__}")
        raise typer.Exit


@cli.callback()
def main(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Which fact to ask a person next, what they can change, and when they may act."""


def _add_commands() -> None:
    """Add the commands of this package, then those that other packages announce as entry points."""
    own = (demo, schema, data, blanket, fit, interview, advise, certify, monitor, verify)
    found = [entry.load() for entry in sorted(entry_points(group=GROUP))]
    for command in (*own, *found):
        if isinstance(command, typer.Typer):
            cli.add_typer(command)
        else:
            cli.command(epilog=show_examples(command.__name__))(command)


_add_commands()


def app(arguments: Sequence[str] | None = None) -> None:
    """Run the command line.

    An error is one line on standard error and an exit code; with ``--debug`` it is raised.

    Parameters
    ----------
    arguments
        What was typed after ``edfa``; None: ``sys.argv``.

    Raises
    ------
    SystemExit
        Always, with the exit code of the command, unless ``--debug`` raises an error.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    _prepare_streams()
    try:
        _run([word for word in words if word != "--debug"])
    except Exception as error:
        if debug:
            raise
        _fail(*_explain(error))


def _explain(error: Exception) -> tuple[str, int]:
    """Return an error in words, and the exit code of its kind."""
    if isinstance(error, EdfaError):
        return str(error), 2
    if isinstance(error, OSError):  # of files, disks and networks, which are never a fault in edfa
        place = "" if error.filename is None else f"{error.filename}: "
        return f"{place}{error.strerror or error}", 2
    if isinstance(error, MemoryError):
        return "this machine has too little memory for it; take fewer rows (--cap) or features", 2
    return f"{type(error).__name__}: {error} (a fault in edfa; --debug shows where)", 1


def _run(words: list[str]) -> None:
    """Run a command and flush what it wrote; a reader that has gone away, as ``head`` does, ends it
    quietly.
    """
    code: int | str | None = 0
    try:
        try:
            cli(words, prog_name="edfa")
        except SystemExit as stop:
            if isinstance(stop.__context__, BrokenPipeError):  # typer and rich call this a failure
                raise stop.__context__ from None
            code = stop.code
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stdout = sys.stderr = _nowhere()  # nothing is left to be flushed at exit
        code = 0
    raise SystemExit(code)


def _prepare_streams() -> None:
    """See that both streams are there and can write every character, as an escape if need be."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed: >&-
            setattr(sys, name, _nowhere())
        elif isinstance(stream, io.TextIOWrapper) and (
            stream.errors == "strict"
            or (stream.errors == "surrogateescape" and stream.encoding.lower() != "utf-8")
        ):
            stream.reconfigure(errors="backslashreplace")


def _nowhere() -> TextIO:
    """A stream that forgets everything that is written to it."""
    return Path(os.devnull).open("w", encoding="utf-8")


def _fail(message: str, code: int) -> NoReturn:
    """Write an error to standard error, in one line, and exit."""
    line = escape(printable(" ".join(message.splitlines())))
    with suppress(OSError):
        Console(stderr=True).print(f"[red]error:[/red] {line}", highlight=False, soft_wrap=True)
    raise SystemExit(code) from None
