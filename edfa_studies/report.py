"""The report of a study: one HTML page that loads nothing, Markdown, and every table and figure as
files.

``write_report`` is the entry: it makes all exhibits (``edfa_studies.sections``), fills two
templates, and replaces the folder of the report at once.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

import edfa
from edfa.errors import UnwritableError
from edfa.extras import check_extra
from edfa.text import html
from edfa.text.spreadsheet import safe
from edfa.writing import replace_folder, restore_interrupted
from edfa_studies.cells import Cell
from edfa_studies.config import Study, expand
from edfa_studies.figures.render import inline, render
from edfa_studies.sections import Exhibit, sections
from edfa_studies.tables.render import markdown_escaped, to_csv, to_html, to_latex, to_markdown
from edfa_studies.tables.rows import View

PARTS = {"report.html", "report.md", "csv", "latex", "svg", "png"}
FOLDED_FROM = 40  # rows from which on a table is folded on the page
Files = dict[str, str | bytes]


def write_report(store: Any, config: Study, folder: Path) -> list[Path]:
    """Write the report of a study: ``report.html``, ``report.md``, its tables and figures in csv,
    latex, svg and png.

    Parameters
    ----------
    store
        The ``Store`` with the results.
    config
        The study's configuration: its title, and the cells that count. Cells that are not done are
        named.
    folder
        Where the report goes; made if need be. A report that is there is replaced when the new one
        is whole; anything else in the folder is an error.

    Returns
    -------
    list of Path
        Every file written, ``report.html`` first. The same results give the same bytes.

    Raises
    ------
    UnwritableError
        If the folder has something that is no part of a report.
    MissingExtraError
        If matplotlib is not installed.
    """
    return write_sections(store, config.title, expand(config), folder)


def write_sections(store: Any, title: str, cells: Sequence[Cell], folder: Path) -> list[Path]:
    """Write the report of these cells; without any, of everything in the store.

    See ``write_report``; ``title`` stands above the report.
    """
    check_extra("plots", "the report of a study")
    counted, doubled = distinct(cells)
    done = store.done()
    parts = sections(View(store, {cell.key for cell in counted} if counted else None))
    files: Files = {}
    for exhibit in chain(*(section.present for section in parts)):
        files |= exhibit_files(exhibit)
    values = {
        "title": title,
        "version": edfa.__version__,
        "total": len(counted),
        "missing": [cell for cell in counted if cell.key not in done],
        "doubled": doubled,
        "sections": parts,
        "files": files,
        "long": FOLDED_FROM,
    }
    body = Markup(_filled("report.html.jinja", values))  # noqa: S704 - the template escapes
    page = html.page(title, body)
    pages: Files = {"report.html": page, "report.md": _filled("report.md.jinja", values)}
    return _write(folder, pages | files)


def _filled(template: str, values: dict[str, Any]) -> str:
    """A template of this package with ``values``, and the functions that it may call."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("edfa_studies"),
        autoescape=jinja2.select_autoescape(["html.jinja"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {"anchor": anchor, "summary": summary, "escaped": markdown_escaped}
    environment.globals |= {"inline": inline, "to_html": to_html, "to_markdown": to_markdown}
    return environment.get_template(template).render(values).rstrip() + "\n"


def distinct(cells: Sequence[Cell]) -> tuple[list[Cell], list[Cell]]:
    """Cells with different names, and those that have the names of an earlier one but other
    settings.

    Results are known by their names; two cells of one name would be taken for two seeds of one.

    Returns
    -------
    counted, doubled : list of Cell
        The first cell of each name, and all others.
    """
    first: dict[tuple[str, ...], Cell] = {}
    doubled = [
        cell
        for cell in cells
        if first.setdefault(tuple(cell.description.values()), cell) is not cell
    ]
    return list(first.values()), doubled


def exhibit_files(exhibit: Exhibit) -> Files:
    """The files of an exhibit.

    Returns
    -------
    dict
        Content by path in the report's folder: its data as CSV, and LaTeX for a table, SVG and PNG
        for a figure.
    """
    name = exhibit.name
    data: Files = {f"csv/{name}.csv": to_csv(_safe(exhibit.frame))}
    if exhibit.draw is None:
        latex = to_latex(exhibit.frame, exhibit.caption, name, exhibit.digits)
        return data | {f"latex/{name}.tex": latex}
    svg, png = render(exhibit.draw, name, exhibit.size)
    return data | {f"svg/{name}.svg": svg, f"png/{name}.png": png}


def _safe(frame: pd.DataFrame) -> pd.DataFrame:
    """A table whose words no spreadsheet takes for formulas; numbers stay as they are."""
    words = frame.map(lambda cell: safe(cell) if isinstance(cell, str) else cell)
    return words.rename(columns=lambda name: safe(str(name)))


def _write(folder: Path, files: Files) -> list[Path]:
    """Replace a report by these files, all of them or none."""
    restore_interrupted(folder)
    if stray := sorted({path.name for path in folder.glob("*")} - PARTS):
        raise UnwritableError(
            f"{folder} would be replaced, and {stray[0]} is no part of a report; move it elsewhere"
        )
    with replace_folder(folder) as partial:
        for name, content in files.items():
            (partial / name).parent.mkdir(exist_ok=True)
            (partial / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return [folder / name for name in files]


def summary(cells: Iterable[Cell]) -> list[str]:
    """Cells in a few lines.

    Returns
    -------
    list of str
        A line for each measure, data set and model, sorted: how many cells there are of which
        blanket, policy and searcher.
    """
    groups: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for cell in cells:
        names = cell.description
        group = "{measure}, {data}, {predictor}".format(**names)
        groups[group]["{blanket} {policy} {searcher}".format(**names)] += 1
    return [
        f"{group}: " + ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))
        for group, counts in sorted(groups.items())
    ]


def anchor(title: str) -> str:
    """A title as the name of a place on the page.

    >>> anchor("Ablations (Figures 14 to 17)")
    'ablations-figures-14-to-17'
    """
    return "-".join(re.findall(r"[^\W_]+", title.lower()))
