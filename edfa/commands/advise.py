"""``edfa advise``: for each person of a file, what to ask next, what to change, and whether they may act."""

from pathlib import Path
from typing import Annotated

import typer

from edfa.commands.common import AsJson, Folder, Output, Quiet, load_advisor, show_progress

__all__ = ["advise"]


def advise(
    folder: Folder,
    rows: Annotated[
        Path,
        typer.Argument(help="A file with one row per person: .csv, .parquet or .jsonl. An empty cell is not known."),
    ],
    out: Annotated[Path, typer.Option(help="Where to write the advice: .csv, .parquet or .jsonl.")],
    plans: Annotated[int, typer.Option(help="Largest number of plans per person.")] = 3,
    chunk: Annotated[int, typer.Option(help="Number of people worked on at a time.")] = 10_000,
    jobs: Annotated[int, typer.Option(help="Number of parallel jobs; -1 uses every processor.")] = -1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Advise everybody in a file: next question, plans, may they act. An interrupted run resumes where it stopped."""
    from edfa.advice.batch_file import advise_file

    output = Output(as_json, quiet)
    advisor = load_advisor(folder)
    with show_progress(output) as progress:
        counts = advise_file(
            advisor.fitted,
            rows,
            out,
            k=plans,
            chunk=chunk,
            n_jobs=jobs,
            progress=lambda people, chunks: progress("people", people, people + chunk),
        )
    errors = f", {counts['errors']:,} of them not understood (see the column error)" if counts["errors"] else ""
    output.say(f"advised {counts['people']:,} people{errors}: {out}")
    output.write_json(out=str(out), **counts)
