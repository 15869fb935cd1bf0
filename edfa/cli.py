"""The command line. Names become objects here; everything else is the library's.

Heavy imports stay inside the commands, so that ``edfa --help`` answers at once.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from edfa.commands.advise import advise
from edfa.commands.certify import certify, monitor
from edfa.commands.fit import fit
from edfa.commands.interview import interview, verify
from edfa.commands.tables import blanket, data, describe, schema, split
from edfa.errors import EdfaError

__all__ = ["app"]

EXITS = "Exit codes: 0 done; 1 a fault in edfa; 2 something given is wrong; 3 the answer is no; 130 interrupted."
cli = typer.Typer(
    help=__doc__.splitlines()[0],
    epilog=EXITS,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console()


@cli.callback()
def main(debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere.")] = False) -> None:
    """Which fact to ask a person next, what they can change, and when they may act."""


@cli.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder that the report goes into.")] = Path("out/demo"),
    language: Annotated[str, typer.Option(help="What the applicant is addressed in: en or de.")] = "en",
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only write the report.")] = False,
) -> None:
    """German credit from table to receipt: fit an advisor, interview one applicant, write a report."""
    from edfa.demo import show, tell, write

    with console.status("fitting an advisor") as status:
        found = show(language, lambda stage, done, total: status.update(f"{stage}: {done:,} of {total:,}"))
    path = write(found, out)
    if as_json:
        sys.stdout.write(json.dumps(found.summary() | {"report": str(path)}, ensure_ascii=False) + "\n")
        return
    if quiet:
        return
    table = found.table
    console.print(f"[bold]{table.schema.title}[/bold]: {len(table):,} people, {len(table.schema)} facts about each\n")
    console.print(describe(table), "", split(table), "", sep="\n")
    for title, lines in tell(found):
        console.print(f"[bold]{escape(title)}[/bold]")
        console.print(*map(escape, lines), "", sep="\n", highlight=False)
    console.print(f"wrote {path}", highlight=False, soft_wrap=True)


for command in (schema, data, blanket, fit, interview, advise, certify, monitor, verify):
    cli.command()(command)


def app(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; errors are one line on stderr and an exit code, not a traceback, unless --debug is said."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    try:
        cli([word for word in given if word != "--debug"], prog_name="edfa")
    except EdfaError as error:
        if debug:
            raise
        _fail(str(error), 2)
    except Exception as error:
        if debug:
            raise
        _fail(f"{type(error).__name__}: {error} (a fault in edfa; --debug shows where)".replace("\n", " "), 1)


def _fail(message: str, code: int) -> NoReturn:
    Console(stderr=True).print(f"[red]error:[/red] {escape(message)}", highlight=False, soft_wrap=True)
    raise SystemExit(code) from None
