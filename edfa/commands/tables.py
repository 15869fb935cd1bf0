"""``edfa schema``, ``edfa data`` and ``edfa blanket``: tables, their cards, and which of their
features matter.
"""

import csv
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from edfa.commands import completion
from edfa.commands.common import AsJson, BlanketMethod, Card, Output, Quiet, TableName
from edfa.errors import SettingError

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from edfa.blanket.units import Blanket
    from edfa.data.table import Table

__all__ = ["blanket", "data", "describe", "schema", "split"]

console = Console()


def schema(
    table: Annotated[Path, typer.Argument(help="A .csv or .parquet file.")],
    target: Annotated[str, typer.Option(help="The column that holds the outcome.")],
    favourable: Annotated[
        str | None, typer.Option(help="The outcome a person would want; it is never guessed.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write the card to; by default it is printed.")
    ] = None,
    force: Annotated[bool, typer.Option(help="Replace a card that is already there.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Draft the card of a table: what it guesses says so, for you to check."""
    from edfa.data.infer_schema import infer_card
    from edfa.data.read import read_frame
    from edfa.writing import write_text

    if out is not None and out.exists() and not force:
        raise typer.BadParameter(
            f"{out} is there already; --force writes over it", param_hint="--out"
        )
    text = infer_card(read_frame(table), target, favourable, title=table.stem)
    if out is not None:
        write_text(out, text)
    if as_json:
        Output(as_json, quiet).write_json(out=None if out is None else str(out), card=text)
    elif out is None:
        sys.stdout.write(text)
    elif not quiet:
        console.print(f"wrote {escape(str(out))}; look for the lines that say [bold]guessed[/bold]")


def data(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A data set of the paper, or a .csv or .parquet file.",
            autocompletion=completion.data_sets,
        ),
    ] = None,
    card: Card = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the rows to a .csv or .parquet file.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """List the data sets, or describe one of them or a table of your own."""
    output = Output(as_json, quiet)
    if name is None:
        rows = _catalog()
        output.write_json(
            sets=[
                dict(zip(("name", "features", "title", "where"), row, strict=True)) for row in rows
            ]
        )
        if output.people:
            console.print(
                _grid("The data sets of the paper", ["name", ">features", "title", "where"], rows)
            )
        return
    table = _table(name, card)
    if out is not None:
        _write_rows(table, out)
        output.say(f"wrote {len(table):,} rows to {out}")
        output.write_json(out=str(out), rows=len(table))
        return
    description = table.describe().reset_index()
    output.write_json(
        name=table.name, rows=len(table), features=json.loads(description.to_json(orient="records"))
    )
    if not output.people:
        return
    console.print(f"[bold]{escape(table.schema.title or table.name)}[/bold]: {len(table):,} people")
    for line in (table.schema.source, *table.schema.notes):
        console.print(escape(line), style="dim", highlight=False)
    console.print("", describe(table), "", split(table), sep="\n")


def blanket(
    table: TableName,
    schema: Card = None,
    target: Annotated[
        str | None, typer.Option(help="Another column than the card's outcome.")
    ] = None,
    method: BlanketMethod = "hiton-mb",
    compare: Annotated[
        bool, typer.Option("--compare", help="All four methods side by side.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="For machines: a JSON list of blankets.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Find which features matter for the outcome, in which units, and on what evidence."""
    import time

    from edfa.blanket.discovery import METHODS, discover
    from edfa.blanket.robustness import compare as compare_methods

    rows = _bare(table, schema, target)
    start = time.perf_counter()
    console.quiet = quiet or as_json
    with console.status("searching") as status:
        if compare:
            progress = lambda i, n: status.update(f"{i} of {n} methods")  # noqa: E731
            comparison = compare_methods(rows, target=target, progress=progress)
            blankets = dict(comparison.blankets)
        else:
            chosen: Any = method
            progress = lambda i, n: status.update(f"{i} of {n} candidates")  # noqa: E731
            blankets = {method: discover(rows, chosen, target=target, progress=progress)}
    seconds = time.perf_counter() - start
    if as_json:
        sys.stdout.write("[" + ",\n".join(b.to_json() for b in blankets.values()) + "]\n")
        return
    if compare:
        rows_shown = [[str(f), *roles] for f, *roles in comparison.frame().itertuples()]
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
        raise SettingError(
            "without a card the outcome must be named: --target NAME, or --schema CARD"
        )
    return read_frame(name) if Path(name).suffix else load(name)


def _evidence(blanket: "Blanket") -> "RichTable":
    rows = [
        [name, f"{e.p:.1e}", f"{e.effect:.4f}", e.test, ", ".join(e.given) or "nothing"]
        for name, e in blanket.evidence.items()
    ]
    title = "The weakest test each member passed"
    return _grid(title, ["member", ">p", ">effect (nats)", "test", "given"], rows)


def _table(name: str, card: Path | None) -> "Table":
    """A data set of the paper by its name, or a file with its card."""
    from edfa.data.catalog import load
    from edfa.data.read import read_frame
    from edfa.data.table import Table

    if card is None:
        return load(name)
    return Table.from_frame(read_frame(name, card), card, name=Path(name).stem)


def _write_rows(table: "Table", out: Path) -> None:
    """Write a table's rows to a file, which is whole or as it was; read with the same card they are
    the same table.
    """
    from edfa.writing import atomic_file

    if out.suffix not in (".csv", ".parquet"):
        raise SettingError(f"{out.name}: rows are written to a .csv or a .parquet file")
    frame = table.frame
    with atomic_file(out) as partial:
        if out.suffix == ".parquet":
            frame.to_parquet(partial, index=False)
        else:  # a carriage return ends a line for many readers, so that words with one are quoted
            texts = [frame[name] for name in frame.columns if frame[name].dtype == "str"]
            returns = any(
                text.str.contains("\r", regex=False).any() for text in texts
            ) or "\r" in "".join(frame.columns)
            quoting: Any = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
            frame.to_csv(partial, index=False, quoting=quoting, lineterminator="\n")


def _grid(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> "RichTable":
    """A table for the terminal, one line per row; on a narrow screen the last column is cut.

    ">" before a column's name right-aligns the column.
    """
    from rich.table import Table as RichTable

    cells = [[*row] for row in rows]
    grid = RichTable(
        title=title, title_justify="left", title_style="bold", box=None, pad_edge=False
    )
    for column in columns:
        grid.add_column(
            escape(column.removeprefix(">")),
            justify="right" if column.startswith(">") else "left",
            header_style="dim",
        )
    widths = [max(len(row[i]) for row in [columns, *cells]) + 2 for i in range(len(columns) - 1)]
    room = max(12, console.width - sum(widths))
    for *row, last in cells:
        grid.add_row(
            *map(escape, row), escape(last if len(last) <= room else last[: room - 1] + "…")
        )
    return grid


def describe(table: "Table") -> "RichTable":
    """One row per feature: what its card says, and which values the table has."""
    rows = []
    for name, row in table.describe().iterrows():
        feature = table.schema[str(name)]
        marks = " ".join(word for word in ("start", "sensitive") if row[word])
        missing = f" ({row['missing']:.0%} missing)" if row["missing"] else ""
        unit = f" {feature.unit}" if feature.unit and not feature.words else ""
        change = feature.change if feature.actionable else "no"
        rows.append(
            [
                feature.name,
                feature.kind,
                f"{feature.cost:g}",
                marks,
                change,
                f"{row['values']}{unit}{missing}",
            ]
        )
    return _grid(
        "What can be known, and what it costs",
        ["feature", "kind", ">cost", "", "change", "values"],
        rows,
    )


def split(table: "Table") -> "RichTable":
    """One row per part of the split: its size and the share of each class."""
    classes = table.schema.classes
    rows = [
        [
            part.part,
            f"{len(part):,}",
            *(f"{(part.y == code).mean():.1%}" for code in range(len(classes))),
        ]
        for part in (table.train, table.calibration, table.test)
    ]
    return _grid(
        f"The split (seed {table.seed}, stratified)",
        ["part", ">people", *(f">{c}" for c in classes)],
        rows,
    )


def _catalog() -> list[list[str]]:
    """One row per data set of the paper: name, number of features, title, and where it is kept."""
    from edfa.data.catalog import NAMES, load_schema, where

    cards = {name: load_schema(name) for name in NAMES}
    return [[name, str(len(card)), card.title, where(name)] for name, card in cards.items()]
