"""``edfa advise``: for each person of a file, what to ask next, what to change, and whether they
may act.
"""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from edfa.commands.common import (
    AsJson,
    Folder,
    Output,
    Quiet,
    Scheduler,
    load_advisor,
    show_progress,
)

SAMPLE = 1 << 20  # bytes whose lines are counted to tell how many a file has


def advise(
    folder: Folder,
    rows: Annotated[
        Path,
        typer.Argument(
            help="A file with one row per person: .csv, .parquet or .jsonl; "
            "or a folder of .parquet files. "
            "An empty cell is not known."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Where to write the advice: .csv, .parquet or .jsonl.")],
    plans: Annotated[int, typer.Option(help="Largest number of plans per person.")] = 3,
    chunk: Annotated[
        int | None,
        typer.Option(
            help=(
                "Number of people worked on at a time; by default up to "
                "1,000, or what takes 5 seconds."
            )
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option(help="Number of parallel jobs; -1 uses every processor.")
    ] = -1,
    scheduler: Scheduler = None,
    rules_column: Annotated[
        str | None,
        typer.Option(
            help='Column with each person\'s own rules: empty, or JSON such as {"max_changes": 1}.'
        ),
    ] = None,
    person_rules: Annotated[
        Path | None,
        typer.Option(
            help=(
                "File with people's own rules: .jsonl or .csv, a row "
                "number from 0 and the same keys."
            )
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Advise everybody in a file: next question, plans, may they act. An interrupted run resumes
    where it stopped.

    The exit code is 2 if not a single row was understood; the result says why of each.
    """
    from edfa.advice.batch_file import advise_file
    from edfa.advice.on_workers import Cluster
    from edfa.data.read import chunks
    from edfa.errors import DataError, SettingError
    from edfa.text.spreadsheet import restored
    from edfa.writing import check_writable

    output = Output(as_json, quiet)
    check_writable(out)
    if rules_column is not None and person_rules is not None:
        raise SettingError(
            "people's overlays come from a column or from a file; give one of the two"
        )
    advisor = load_advisor(folder)
    expected = _estimate_people(rows) if output.people else 0
    with show_progress(output) as progress:
        counts = advise_file(
            advisor.fitted,
            rows,
            out,
            k=plans,
            chunk=chunk,
            workers=jobs if scheduler is None else Cluster(scheduler, folder),
            progress=lambda people, parts: progress("people", people, max(expected, people)),
            overlays=person_rules if rules_column is None else rules_column,
        )
    said = f"advised {counts['people']:,} people"
    if counts["errors"]:
        said += f", {counts['errors']:,} of them not understood (see the column error)"
    if counts["flagged"]:
        said += f", {counts['flagged']:,} with facts beyond what was seen (see the column flags)"
    output.say(f"{said}: {out}")
    output.write_json(out=out, **counts)
    if counts["errors"] == counts["people"]:
        first = restored(str(next(chunks(out, 1))["error"].iloc[0]))
        raise DataError(f"none of the {counts['people']:,} rows was understood; the first: {first}")


def _estimate_people(rows: Path) -> int:
    """About how many people there are, for the time left; 0: it cannot be told.

    It is exact for Parquet; of other files the length of the first lines is taken for that of all.
    What is wrong with a file is said by what reads it.

    Parameters
    ----------
    rows
        A file of people, or a folder of Parquet files.
    """
    with suppress(OSError, ValueError):
        if rows.is_dir() or rows.suffix == ".parquet":
            from pyarrow.parquet import read_metadata

            files = rows.glob("*.parquet") if rows.is_dir() else (rows,)
            return sum(
                read_metadata(path).num_rows for path in files if path.is_file()
            )  # a pipe would be waited for
        if rows.is_file():
            with rows.open("rb") as file:
                first = file.read(SAMPLE)
            return round(first.count(b"\n") / max(len(first), 1) * rows.stat().st_size)
    return 0
