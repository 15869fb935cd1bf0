"""What a report is made of: sections with tables and figures, each under its name, with a caption and its data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pandas as pd

from edfa.text.html import Markup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FigureExhibit", "Section", "TableExhibit"]


@dataclass(frozen=True)
class TableExhibit:
    """A table: ``name`` is that of its files, ``digits`` the decimals of each column."""

    name: str
    caption: str
    frame: pd.DataFrame
    digits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class FigureExhibit:
    """A figure: ``draw`` puts ``frame`` on a figure of ``size`` inches; ``extra`` follows it on the page."""

    name: str
    caption: str
    frame: pd.DataFrame
    draw: "Callable[[Figure], object]"
    size: tuple[float, float]
    extra: Markup = Markup()  # noqa: RUF009 - immutable


@dataclass(frozen=True)
class Section:
    """A part of the report: a title, some words, and what it shows. Exhibits without data are left out and named."""

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
