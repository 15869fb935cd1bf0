"""``edfa demo``: German credit from table to receipt, told in the terminal and written as a report."""

from pathlib import Path
from typing import Annotated

import typer

from edfa.commands.common import AsJson, Output, Quiet, advance
from edfa.commands.tables import describe, split

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option(help="The folder that the report goes into.")] = Path("out/demo"),
    language: Annotated[str, typer.Option(help="What the applicant is addressed in: en or de.")] = "en",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """German credit from table to receipt: fit an advisor, interview one applicant, write a report."""
    from edfa.demo import show, tell, write

    output = Output(as_json, quiet)
    with advance(output) as progress:
        found = show(language, progress)
    path = write(found, out)
    table = found.table
    output.say(f"{table.schema.title}: {len(table):,} people, {len(table.schema)} facts about each", "", style="bold")
    if output.people:
        output.console.print(describe(table), "", split(table), "", sep="\n")
    for title, lines in tell(found):
        output.say(title, style="bold")
        output.say(*lines, "")
    output.say(f"wrote {path}", style="dim")
    output.tell(**found.summary(), report=str(path))
