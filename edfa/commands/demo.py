"""``edfa demo``: the adult data set from table to receipts, in the terminal and as a report."""

from pathlib import Path
from typing import Annotated

import typer

from edfa.commands.common import AsJson, Output, Quiet, show_progress
from edfa.commands.completion import complete
from edfa.commands.tables import describe, split


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("out/demo"),
    language: Annotated[
        str,
        typer.Option(help="Language of the report: en or de.", autocompletion=complete("en", "de")),
    ] = "en",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """From a table to receipts: fit an advisor, interview one person for each way in which an
    interview ends early, write a report.
    """
    from edfa.demo import run_demo, story, write_report
    from edfa.writing import check_writable

    output = Output(as_json, quiet)
    check_writable(out / "report.html", made=True)
    with show_progress(output) as progress:
        result = run_demo(language, progress)
    path = write_report(result, out)
    table = result.table
    output.say(
        f"{table.schema.title}: {len(table):,} people, {len(table.schema)} facts about each",
        "",
        style="bold",
    )
    output.show(describe(table), "", split(table), "")
    for title, lines in story(result):
        output.say(title, style="bold")
        output.say(*lines, "")
    output.say(f"wrote {path}", style="dim")
    output.write_json(**result.summary(), report=path)
