"""What commands share: what is printed for people and for machines, progress, exit codes.

0    done
1    a fault in edfa itself; --debug shows where
2    something that was given is wrong: a name, a file, an answer
3    done, and the answer is no: no certificate, an alarm, a receipt that does not hold
130  interrupted; nothing is left half-written, and advise goes on where it was
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

if TYPE_CHECKING:
    from edfa.advice.advisor import Advisor
    from edfa.data.table import Table

__all__ = ["NO", "AsJson", "Folder", "Output", "Quiet", "advance", "load_advisor", "open_table"]

NO = 3

AsJson = Annotated[bool, typer.Option("--json", help="For machines: one JSON object on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A saved advisor.")]


class Output:
    """Where a command speaks: to people, to machines, or not at all. Progress goes to standard error."""

    def __init__(self, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json, self.quiet = as_json, quiet
        self.console = Console()

    @property
    def people(self) -> bool:
        """Whether a person reads along."""
        return not (self.as_json or self.quiet)

    def say(self, *lines: str, style: str | None = None) -> None:
        """Some lines for people."""
        for line in lines if self.people else ():
            self.console.print(escape(line), style=style, highlight=False, soft_wrap=True)

    def tell(self, **facts: Any) -> None:
        """The whole answer for machines."""
        if self.as_json and not self.quiet:
            sys.stdout.write(json.dumps(facts, ensure_ascii=False, default=str) + "\n")


@contextmanager
def advance(output: Output) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar a stage, where a person reads along; called with the stage, what is done, what there is to do."""
    if not output.people:
        yield lambda stage, done, total: None
        return
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<12}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def tell(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                for task in tasks.values():  # a new stage: those before it are done
                    progress.update(task, total=1, completed=1)
                tasks[stage] = progress.add_task(stage, total=total)
            progress.update(tasks[stage], completed=done, total=total)

        yield tell


def load_advisor(folder: Path) -> "Advisor":
    """A saved advisor."""
    from edfa.advice.advisor import Advisor

    return Advisor.load(folder)


def open_table(name: str, card: Path | None, **options: Any) -> "Table":
    """A data set of the paper by its name, or a file with its card."""
    from edfa.data.catalog import load
    from edfa.data.read import read_frame
    from edfa.data.table import Table
    from edfa.errors import SchemaError

    if card is not None:
        return Table.from_frame(read_frame(name), card, name=Path(name).stem, **options)
    if Path(name).suffix:
        raise SchemaError(f"{name} needs its card: --schema CARD (edfa schema {name} --target NAME drafts one)")
    return load(name, **options)
