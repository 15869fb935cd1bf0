"""What the commands share: options, output for people and for machines, progress bars, exit codes.

0    done
1    a fault in edfa itself; --debug shows where
2    wrong input: a name, a file, an answer
3    done, and the answer is no: no certificate, an alarm, a receipt that does not hold
130  interrupted; nothing is left half-written, and advise resumes where it stopped
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from edfa.commands import completion

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from edfa.advice.advisor import Advisor
    from edfa.certification.certificate import Certificate, GroupCertificates
    from edfa.data.table import Table

EXIT_NO = 3

AsJson = Annotated[
    bool,
    typer.Option("--json", help="Write one JSON object to standard output, for other programs."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Write nothing but errors.")]
Scheduler = Annotated[
    str | None,
    typer.Option(
        help="Address of a Dask scheduler, such as tcp://10.0.0.5:8786: its workers do the work."
    ),
]
TableName = Annotated[
    str,
    typer.Argument(
        help="A data set of the paper, or a .csv or .parquet file.",
        autocompletion=completion.data_sets,
    ),
]
Card = Annotated[Path | None, typer.Option(help="The card of your own table.")]
Force = Annotated[bool, typer.Option(help="Replace what is already there.")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a saved advisor.")]


class Output:
    """A command's output: text for people, JSON for other programs, or nothing. Progress goes to
    standard error.

    Parameters
    ----------
    as_json, quiet
        Whether ``--json``, or ``--quiet``, was given.
    """

    def __init__(self, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json, self.quiet = as_json, quiet
        self.console = Console()

    @property
    def people(self) -> bool:
        """Whether text for people is written: neither --json nor --quiet was given."""
        return not (self.as_json or self.quiet)

    def say(self, *lines: str, style: str | None = None) -> None:
        """Write lines of text for people.

        Parameters
        ----------
        lines
            The lines; control characters in them are written as escapes.
        style
            A style of rich, such as ``"bold"``.
        """
        for line in lines if self.people else ():
            self.console.print(
                escape(printable(line, keep="\n")), style=style, highlight=False, soft_wrap=True
            )

    def show(self, *renderables: Any) -> None:
        """Print tables, and plain text in between, for people."""
        if self.people:
            self.console.print(*renderables, sep="\n")

    def write_json(self, noun: Any = None, **more: Any) -> None:
        """Write the command's result as one JSON object, if --json was given; in ASCII unless
        standard output is in Unicode.

        Parameters
        ----------
        noun
            Something with ``to_json``, whose entries come first.
        more
            Further entries by name: plain data, something with ``to_json``, or anything else, which
            is written as text.
        """
        if self.as_json and not self.quiet:
            result = more if noun is None else _plain(noun) | more
            ascii_only = not (sys.stdout.encoding or "utf-8").lower().startswith("utf")
            sys.stdout.write(json.dumps(result, default=_plain, ensure_ascii=ascii_only) + "\n")


def printable(text: str, keep: str = "") -> str:
    """A text whose control characters, which a terminal would obey, are written as escapes; those
    in ``keep`` stay.

    >>> printable("one\\ntwo\\x1b[2J")
    'one\\\\ntwo\\\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in text)


def _plain(value: Any) -> Any:
    """A noun as the data that its JSON is, anything else as a text."""
    return json.loads(value.to_json()) if hasattr(value, "to_json") else str(value)


def say_endings(endings: "Mapping[str, Certificate | GroupCertificates]") -> list[str]:
    """What is promised about each ending of an interview, a line for each, which begins with the
    name of the ending if there are several.
    """
    several = len(endings) > 1
    return [
        f"{name}: {line}" if several else line
        for name, made in endings.items()
        for line in made.sentence.splitlines()
    ]


def grid(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> "RichTable":
    """Make a table for the terminal, one line per row; on a narrow screen the last column is cut.

    Parameters
    ----------
    title
        The line above it; empty: there is none.
    columns
        The names of the columns; one that begins with ">" is aligned to the right.
    rows
        The cells, a sequence for each row.
    """
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable(
        title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False
    )
    for column in columns:
        table.add_column(
            Text(column.removeprefix(">")),
            justify="right" if column.startswith(">") else "left",
            header_style="dim",
            no_wrap=column != columns[-1],
        )
    for row in rows:
        table.add_row(*(Text(cell, no_wrap=True, overflow="ellipsis") for cell in row))
    return table


@contextmanager
def show_progress(output: Output) -> Iterator[Callable[[str, int, int], None]]:
    """Show one progress bar per stage, with the time it has taken and the time it has left.

    Parameters
    ----------
    output
        Nothing is shown unless it writes text for people.

    Yields
    ------
    callable
        Takes the stage, the work done and the total work; a total of at most 1 says nothing about
        how far the stage is, so that no time left is shown.
    """
    if not output.people:
        yield lambda stage, done, total: None
        return
    from rich.progress import (
        BarColumn,
        Progress,
        Task,
        TaskID,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class TimeLeft(TimeRemainingColumn):
        """The time left of a stage, once it can be told."""

        def render(self, task: Task) -> Text:
            known = task.time_remaining is not None and not task.finished
            return Text(f"{super().render(task)} left" if known else "")

    columns = (TextColumn("{task.description:<12}"), BarColumn(), TimeElapsedColumn(), TimeLeft())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def update(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                for task in tasks.values():  # a new stage: those before it are done
                    progress.update(task, total=1, completed=1)
                tasks[stage] = progress.add_task(stage, total=None)
            progress.update(tasks[stage], completed=done, total=total if total > 1 else None)

        yield update


def check_absent(out: Path, force: bool) -> None:
    """Refuse to write over a file or folder unless ``--force`` was given."""
    if out.exists() and not force:
        raise typer.BadParameter(f"{out} is there already; --force replaces it", param_hint="--out")


def load_advisor(folder: Path) -> "Advisor":
    """Load a saved advisor; UnreadableError if the folder holds none."""
    from edfa.advice.advisor import Advisor

    return Advisor.load(folder)


def open_table(name: str, card: Path | None, **options: Any) -> "Table":
    """Load a data set of the paper by its name, or a file with its card.

    Parameters
    ----------
    name
        The name, or the path of a ``.csv`` or ``.parquet`` file.
    card
        The card of the file; None for a data set of the paper.
    options
        Keywords of ``edfa.load`` and ``Table.from_frame``, such as ``seed`` and ``cap``.

    Raises
    ------
    SettingError
        If a file has no card.
    """
    from edfa.data.catalog import load
    from edfa.data.read import read_frame
    from edfa.data.table import Table
    from edfa.errors import SettingError
    from edfa.reading import check_seed

    check_seed(options.get("seed", 0))
    if card is not None:
        return Table.from_frame(read_frame(name, card), card, name=Path(name).stem, **options)
    if Path(name).suffix:
        draft = f"edfa schema {name} --target NAME --favourable CLASS"
        raise SettingError(f"{name} needs its card: --schema CARD ({draft} drafts one)")
    return load(name, **options)
