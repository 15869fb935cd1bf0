"""What a report is made of: sections with tables and figures, each under its name, with a caption
and its data.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pandas as pd

from edfa.text.html import Markup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BANDS", "WIDTH", "FigureExhibit", "Section", "TableExhibit", "file_name"]

WIDTH = 10.4  # inches of a row of four panels
BANDS = (
    "Lines are means over seeds, bands one standard deviation; cost is "
    "a share of the cost of everything."
)


def file_name(name: str) -> str:
    """A name that is safe for files and LaTeX labels; what had to be changed is told apart by a
    digest.

    >>> file_name("figure_5_policies_adult"), file_name("figure_policies_../mine")
    ('figure_5_policies_adult', 'figure_policies_mine_a6bdc066')
    """
    safe = re.sub(r"[^A-Za-z0-9_-]+", "", name)
    return safe if safe == name else f"{safe[:80]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class TableExhibit:
    """A table: ``name`` is that of its files, made safe; ``digits`` are the decimals of each
    column.
    """

    name: str
    caption: str
    frame: pd.DataFrame
    digits: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", file_name(self.name))


@dataclass(frozen=True)
class FigureExhibit:
    """A figure: ``draw`` puts ``frame`` on a figure of ``size`` inches; a page shows ``words``
    instead, if any.
    """

    name: str
    caption: str
    frame: pd.DataFrame
    draw: "Callable[[Figure], object]"
    size: tuple[float, float]
    words: Markup = Markup()  # noqa: RUF009 - immutable

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", file_name(self.name))


@dataclass(frozen=True)
class Section:
    """A part of the report: a title, some words, and what it shows. Exhibits without data are left
    out and named.
    """

    title: str
    text: str
    exhibits: tuple[TableExhibit | FigureExhibit, ...]

    @property
    def present(self) -> tuple[TableExhibit | FigureExhibit, ...]:
        """The exhibits that have data."""
        return tuple(exhibit for exhibit in self.exhibits if len(exhibit.frame))

    @property
    def left_out(self) -> tuple[str, ...]:
        """The names of those that have none."""
        return tuple(exhibit.name for exhibit in self.exhibits if not len(exhibit.frame))
