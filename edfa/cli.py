"""The command line. Names become objects here; everything else is the library's.

Heavy imports stay inside the commands, so that ``edfa --help`` answers at once.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from edfa.commands.advise import advise
from edfa.commands.certify import certify, monitor
from edfa.commands.fit import fit
from edfa.commands.interview import interview, verify
from edfa.errors import EdfaError, SchemaError

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from edfa.blanket.units import Blanket
    from edfa.data.table import Table

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
    console.print(_describe(table), "", _split(table), "", sep="\n")
    for title, lines in tell(found):
        console.print(f"[bold]{escape(title)}[/bold]")
        console.print(*map(escape, lines), "", sep="\n", highlight=False)
    console.print(f"wrote {path}", highlight=False, soft_wrap=True)


@cli.command()
def schema(
    table: Annotated[Path, typer.Argument(help="A .csv or .parquet file.")],
    target: Annotated[str, typer.Option(help="The column that holds the outcome.")],
    favourable: Annotated[str | None, typer.Option(help="The outcome a person would want.")] = None,
    out: Annotated[Path | None, typer.Option(help="Where to write the card; left out, it is printed.")] = None,
    force: Annotated[bool, typer.Option(help="Write over a card that is there.")] = False,
) -> None:
    """Write a draft card for any table: kinds are guessed, for you to edit."""
    from edfa.data.draft import draft
    from edfa.data.read import read_frame

    if out is not None and out.exists() and not force:
        raise typer.BadParameter(f"{out} is there already; --force writes over it", param_hint="--out")
    text = draft(read_frame(table), target, favourable, title=table.stem)
    if out is None:
        sys.stdout.write(text)
        return
    out.write_text(text, encoding="utf-8")
    console.print(f"wrote {out}; look for the lines that say [bold]guessed[/bold]")


@cli.command()
def data(
    name: Annotated[str | None, typer.Argument(help="A data set of the paper, or a .csv or .parquet file.")] = None,
    card: Annotated[Path | None, typer.Option(help="The card of your own table.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the rows to a .csv or .parquet file.")] = None,
) -> None:
    """List the data sets, or describe one of them or a table of your own."""
    if name is None:
        console.print(_catalog())
        return
    table = _table(name, card)
    if out is not None:
        save = table.frame.to_parquet if out.suffix == ".parquet" else table.frame.to_csv
        save(out, index=False)
        console.print(f"wrote {len(table):,} rows to {out}")
        return
    console.print(f"[bold]{escape(table.schema.title or table.name)}[/bold]: {len(table):,} people")
    for line in (table.schema.source, *table.schema.notes):
        console.print(escape(line), style="dim", highlight=False)
    console.print("", _describe(table), "", _split(table), sep="\n")


@cli.command()
def blanket(
    table: Annotated[str, typer.Argument(help="A data set of the paper, or a .csv or .parquet file.")],
    schema: Annotated[Path | None, typer.Option(help="The card of your own table.")] = None,
    target: Annotated[str | None, typer.Option(help="Another column than the card's outcome.")] = None,
    method: Annotated[str, typer.Option(help="hiton-mb, bamb, eamb or iamb.")] = "hiton-mb",
    compare: Annotated[bool, typer.Option("--compare", help="All four methods side by side.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Find which features matter for the outcome, in which units, and on what evidence."""
    import time

    from edfa.blanket import trust
    from edfa.blanket.discover import METHODS, discover

    rows = _bare(table, schema, target)
    start = time.perf_counter()
    with console.status("searching") as status:
        if compare:
            found = trust.compare(rows, target=target, progress=lambda i, n: status.update(f"{i} of {n} methods"))
            blankets = dict(found.blankets)
        else:
            chosen: Any = method
            progress = lambda i, n: status.update(f"{i} of {n} candidates")  # noqa: E731
            blankets = {method: discover(rows, chosen, target=target, progress=progress)}
    seconds = time.perf_counter() - start
    if as_json:
        sys.stdout.write("[" + ",\n".join(b.to_json() for b in blankets.values()) + "]\n")
        return
    if compare:
        rows_shown = [[str(f), *roles] for f, *roles in found.frame().itertuples()]
        console.print(_grid("pc: parent or child", ["feature", *METHODS], rows_shown))
    for one in [] if compare else blankets.values():
        console.print(escape(str(one)), "", _evidence(one), "", sep="\n", highlight=False)
    first = next(iter(blankets.values()))
    count = max(b.tests for b in blankets.values())
    console.print(f"{first.n:,} rows, {count:,} tests, {seconds:.2f} s", style="dim")


def _bare(name: str, card: Path | None, target: str | None) -> Any:
    """The training part of a known set, or the rows of a file, with a card or without."""
    from edfa.data.catalog import NAMES, load
    from edfa.data.read import read_frame

    if name in NAMES:
        return load(name).train
    if card is not None:
        return _table(name, card)
    if target is None and Path(name).suffix:
        raise SchemaError("without a card the outcome must be named: --target NAME, or --schema CARD")
    return read_frame(name) if Path(name).suffix else load(name)


def _evidence(found: "Blanket") -> "RichTable":
    rows = [
        [name, f"{e.p:.1e}", f"{e.effect:.4f}", e.test, ", ".join(e.given) or "nothing"]
        for name, e in found.evidence.items()
    ]
    title = "The weakest test each member passed"
    return _grid(title, ["member", ">p", ">effect (nats)", "test", "given"], rows)


def _table(name: str, card: Path | None) -> "Table":
    from edfa.data.catalog import load
    from edfa.data.read import read_frame
    from edfa.data.table import Table

    if card is None:
        return load(name)
    return Table.from_frame(read_frame(name), card, name=Path(name).stem)


def _grid(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> "RichTable":
    """A plain grid, one line a row. ">" before a name right-aligns it; on a narrow screen the last column is cut."""
    from rich.table import Table as RichTable

    cells = [[*row] for row in rows]
    grid = RichTable(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        grid.add_column(column.lstrip(">"), justify="right" if column.startswith(">") else "left", header_style="dim")
    widths = [max(len(row[i]) for row in [columns, *cells]) + 2 for i in range(len(columns) - 1)]
    room = max(12, console.width - sum(widths))
    for *row, last in cells:
        grid.add_row(*map(escape, row), escape(last if len(last) <= room else last[: room - 1] + "…"))
    return grid


def _describe(table: "Table") -> "RichTable":
    rows = []
    for name, row in table.describe().iterrows():
        feature = table.schema[str(name)]
        marks = " ".join(word for word in ("start", "sensitive") if row[word])
        gap = f" ({row['missing']:.0%} missing)" if row["missing"] else ""
        unit = f" {feature.unit}" if feature.unit and not feature.words else ""
        change = feature.change if feature.actionable else "no"
        rows.append([feature.name, feature.kind, f"{feature.cost:g}", marks, change, f"{row['values']}{unit}{gap}"])
    return _grid("What can be known, and what it costs", ["feature", "kind", ">cost", "", "change", "values"], rows)


def _split(table: "Table") -> "RichTable":
    classes = table.schema.classes
    rows = [
        [part.part, f"{len(part):,}", *(f"{(part.y == code).mean():.1%}" for code in range(len(classes)))]
        for part in (table.train, table.calibration, table.test)
    ]
    return _grid(f"The split (seed {table.seed}, stratified)", ["part", ">people", *(f">{c}" for c in classes)], rows)


def _catalog() -> "RichTable":
    from edfa.data.catalog import NAMES, load_schema, where

    cards = {name: load_schema(name) for name in NAMES}
    rows = [[name, str(len(card)), card.title, where(name)] for name, card in cards.items()]
    return _grid("The data sets of the paper", ["name", ">features", "title", "where"], rows)


for command in (fit, interview, advise, certify, monitor, verify):
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
