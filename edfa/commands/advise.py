"""``edfa advise``: a whole file of people, and what to ask, what to change and whether to act for each."""

from pathlib import Path
from typing import Annotated

import typer

from edfa.commands.common import AsJson, Folder, Output, Quiet, advance, load_advisor

__all__ = ["advise"]


def advise(
    folder: Folder,
    rows: Annotated[Path, typer.Argument(help="People, a row each: .csv, .parquet or .jsonl; empty is not known.")],
    out: Annotated[Path, typer.Option(help="Where to write the advice: .csv, .parquet or .jsonl.")],
    plans: Annotated[int, typer.Option(help="At most so many plans each.")] = 3,
    chunk: Annotated[int, typer.Option(help="So many people at a time.")] = 10_000,
    jobs: Annotated[int, typer.Option(help="So many share the work; -1: one a processor.")] = -1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Next question, plans, and stop or go on, for a whole file; a run that was cut off goes on where it was."""
    from edfa.advice.batch_file import advise_file

    output = Output(as_json, quiet)
    advisor = load_advisor(folder)
    with advance(output) as progress:
        counts = advise_file(
            advisor.fitted,
            rows,
            out,
            k=plans,
            chunk=chunk,
            n_jobs=jobs,
            progress=lambda people, chunks: progress("people", people, people + chunk),
        )
    wrong = f", {counts['errors']:,} of them not understood (see the column error)" if counts["errors"] else ""
    output.say(f"advised {counts['people']:,} people{wrong}: {out}")
    output.tell(out=str(out), **counts)
