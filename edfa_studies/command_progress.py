"""How far a study is, for people: a bar on standard error, with the rate, the time left and the
failures.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

from edfa.commands.common import Output

if TYPE_CHECKING:
    from edfa_studies.engine import Progress

__all__ = ["describe_progress", "duration", "progress_bar"]


@contextmanager
def progress_bar(output: Output, total: int) -> "Iterator[Callable[[Progress], None]]":
    """A progress bar on standard error: cells done, rate, time left, failures."""
    if not output.people:
        yield lambda progress: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("cells"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(
        *columns, TextColumn("{task.description}"), console=Console(stderr=True), transient=True
    ) as bar:
        task = bar.add_task("", total=total)

        def show(progress: "Progress") -> None:
            ended = progress.done + progress.skipped + progress.failed
            bar.update(
                task, completed=ended, total=progress.total, description=describe_progress(progress)
            )

        yield show


def describe_progress(progress: "Progress") -> str:
    """The rate, the time left and the failures, in words."""
    words = []
    if progress.rate:
        words.append(f"{60 * progress.rate:.3g} a minute")
    if progress.seconds_left is not None:
        words.append(f"{duration(progress.seconds_left)} left")
    if progress.failed:
        words.append(f"[red]{progress.failed:,} failed[/red]")
    return ", ".join(words)


def duration(seconds: float) -> str:
    """A time in words, with two figures or so.

    >>> duration(12.3), duration(200), duration(9000), duration(200_000)
    ('12 s', '3 min', '2.5 h', '56 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 36_000 else f"{seconds / 3600:.0f} h"
