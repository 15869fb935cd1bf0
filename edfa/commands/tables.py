"""``edfa schema``, ``edfa data`` and ``edfa blanket``: tables, their cards, and which of their
features matter.
"""

import json
import sys
from csv import QUOTE_NONNUMERIC
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edfa.commands import completion
from edfa.commands.common import (
    AsJson,
    Card,
    Force,
    Output,
    Quiet,
    TableName,
    check_absent,
    grid,
    open_table,
    show_progress,
)
from edfa.errors import SettingError

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from edfa.blanket.units import Blanket
    from edfa.data.table import Table


def schema(
    table: Annotated[Path, typer.Argument(help="A .csv or .parquet file.")],
    target: Annotated[str, typer.Option(help="The column that holds the outcome.")],
    favourable: Annotated[
        str | None, typer.Option(help="The outcome a person would want; it is never guessed.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write the card to; by default it is printed.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Draft the card of a table: what it guesses says so, for you to check."""
    from edfa.data.infer_schema import infer_card
    from edfa.data.read import read_frame
    from edfa.writing import write_text

    output = Output(as_json, quiet)
    if out is not None:
        check_absent(out, force)
    text = infer_card(read_frame(table), target, favourable, title=table.stem)
    if out is not None:
        write_text(out, text)
        output.say(f"wrote {out}; look for the lines that say guessed")
    elif not as_json:
        sys.stdout.write(text)
    output.write_json(out=out, card=text)


def data(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A data set of the paper, or a .csv or .parquet file.",
            autocompletion=completion.data_sets,
        ),
    ] = None,
    schema: Card = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the rows to a .csv or .parquet file.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """List the data sets, or describe one of them or a table of your own."""
    from edfa.data.catalog import NAMES, load_schema, where

    output = Output(as_json, quiet)
    if name is None:
        cards = {known: load_schema(known) for known in NAMES}
        sets = [
            {"name": known, "features": len(card), "title": card.title, "where": where(known)}
            for known, card in cards.items()
        ]
        output.write_json(sets=sets)
        rows = [[str(value) for value in entry.values()] for entry in sets]
        columns = ["name", ">features", "title", "where"]
        output.show(grid("The data sets of the paper", columns, rows))
        return
    table = open_table(name, schema)
    if out is not None:
        _write_rows(table, out)
        output.say(f"wrote {len(table):,} rows to {out}")
        output.write_json(out=out, rows=len(table))
        return
    features = json.loads(table.describe().reset_index().to_json(orient="records"))
    output.write_json(name=table.name, rows=len(table), features=features)
    output.say(f"{table.schema.title or table.name}: {len(table):,} people", style="bold")
    output.say(*table.schema.source.splitlines(), *table.schema.notes, style="dim")
    output.show("", describe(table), "", split(table))


def blanket(
    table: TableName,
    schema: Card = None,
    target: Annotated[
        str | None, typer.Option(help="Another column than the card's outcome.")
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="hiton-mb, bamb, eamb or iamb.",
            autocompletion=completion.complete(*completion.METHODS),
        ),
    ] = "hiton-mb",
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

    output = Output(as_json, quiet)
    rows = _rows_of(table, schema, target)
    start = time.perf_counter()
    with show_progress(output) as progress:
        if compare:
            comparison = compare_methods(rows, target=target, progress=partial(progress, "methods"))
            blankets = list(comparison.blankets.values())
        else:
            chosen: Any = method
            search = partial(progress, "candidates")
            blankets = [discover(rows, chosen, target=target, progress=search)]
    seconds = time.perf_counter() - start
    if as_json:
        sys.stdout.write("[" + ",\n".join(found.to_json() for found in blankets) + "]\n")
    elif compare:
        roles = [[str(feature), *roles] for feature, *roles in comparison.frame().itertuples()]
        output.show(grid("pc: parent or child", ["feature", *METHODS], roles))
    else:
        output.say(str(blankets[0]), "")
        output.show(_evidence(blankets[0]), "")
    tests = max(found.tests for found in blankets)
    output.say(f"{blankets[0].n:,} rows, {tests:,} tests, {seconds:.2f} s", style="dim")


def _rows_of(name: str, card: Path | None, target: str | None) -> Any:
    """The rows in which ``edfa blanket`` looks for what matters.

    Parameters
    ----------
    name
        A data set of the paper, of which it is the training part; or a file.
    card
        The card of the file; without one, the outcome must be named.
    target
        The column of the outcome.
    """
    from edfa.data.catalog import NAMES
    from edfa.data.read import read_frame

    if name in NAMES:
        return open_table(name, None).train
    if card is not None or not Path(name).suffix:
        return open_table(name, card)
    if target is None:
        raise SettingError(
            "without a card the outcome must be named: --target NAME, or --schema CARD"
        )
    return read_frame(name)


def _evidence(blanket: "Blanket") -> "RichTable":
    """One row per member of a blanket: the weakest test that it passed."""
    rows = [
        [name, f"{e.p:.1e}", f"{e.effect:.4f}", e.test, ", ".join(e.given) or "nothing"]
        for name, e in blanket.evidence.items()
    ]
    title = "The weakest test each member passed"
    return grid(title, ["member", ">p", ">effect (nats)", "test", "given"], rows)


def _write_rows(table: "Table", out: Path) -> None:
    """Write a table's rows to a file; read with the same card they are the same table.

    Parameters
    ----------
    table
        The table.
    out
        A ``.csv`` or ``.parquet`` file, which is whole or as it was.
    """
    from edfa.writing import atomic_file, write_text

    if out.suffix not in (".csv", ".parquet"):
        raise SettingError(f"{out.name}: rows are written to a .csv or a .parquet file")
    if out.suffix == ".parquet":
        with atomic_file(out) as partial:
            table.frame.to_parquet(partial, index=False)
        return
    text = table.frame.to_csv(index=False, lineterminator="\n")
    if "\r" in text:  # which ends a line for many readers, so that words with one are quoted
        text = table.frame.to_csv(index=False, quoting=QUOTE_NONNUMERIC, lineterminator="\n")
    write_text(out, text)


def describe(table: "Table") -> "RichTable":
    """A table for the terminal with a row per feature: what its card says, and which values the
    rows have.
    """
    rows = []
    for feature, (_, row) in zip(table.schema, table.describe().iterrows(), strict=True):
        marks = " ".join(word for word in ("start", "sensitive") if row[word])
        missing = f" ({row['missing']:.0%} missing)" if row["missing"] else ""
        unit = f" {feature.unit}" if feature.unit and not feature.words else ""
        change = feature.change if feature.actionable else "no"
        values = f"{row['values']}{unit}{missing}"
        rows.append([feature.name, feature.kind, f"{feature.cost:g}", marks, change, values])
    columns = ["feature", "kind", ">cost", "", "change", "values"]
    return grid("What can be known, and what it costs", columns, rows)


def split(table: "Table") -> "RichTable":
    """A table for the terminal with a row per part of the split: its size and the share of each
    class.
    """
    classes = table.schema.classes
    rows = []
    for part in (table.train, table.calibration, table.test):
        shares = [f"{(part.y == code).mean():.1%}" for code in range(len(classes))]
        rows.append([str(part.part), f"{len(part):,}", *shares])
    columns = ["part", ">people", *(f">{name}" for name in classes)]
    return grid(f"The split (seed {table.seed}, stratified)", columns, rows)
