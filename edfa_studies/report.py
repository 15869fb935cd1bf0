"""The report of a study: one HTML page that loads nothing, Markdown, and every table and figure as
files.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

import edfa
from edfa.errors import UnwritableError
from edfa.extras import check_extra
from edfa.text import html
from edfa.text.html import Markup
from edfa.text.spreadsheet import safe
from edfa.writing import replace_folder, restore_interrupted
from edfa_studies.cells import Cell
from edfa_studies.config import Study
from edfa_studies.exhibits import FigureExhibit, Section, TableExhibit
from edfa_studies.expand import expand
from edfa_studies.figures.render import inline, render
from edfa_studies.sections_beyond import beyond_sections
from edfa_studies.sections_paper import paper_sections
from edfa_studies.tables.render import markdown_escaped, to_csv, to_html, to_latex, to_markdown
from edfa_studies.tables.results import Results, View

__all__ = ["sections", "write_report"]

PARTS = {"report.html", "report.md", "csv", "latex", "svg", "png"}
LONG = 40  # rows from which on a table is folded on the page
STYLE = Markup(
    "<style>body,.edfa{max-width:70rem}.edfa h3{font:600 1rem/1.3 "
    "system-ui,sans-serif;margin:1.6em 0 .3em}"
    ".edfa h4{margin:.3em 0;font-size:.95rem}.edfa figure{margin:1.2em 0}.edfa "
    "figcaption{color:#444;font-size:.9em}"
    ".edfa table{font-size:.85em}.edfa th,.edfa td{padding:.15em .7em .15em "
    "0}.wide{overflow-x:auto}"
    ".cards{display:flex;flex-wrap:wrap;gap:1rem}.card{flex:1 1 15rem;border:1px solid "
    "#ccc;border-radius:.4rem;"
    "padding:.5rem .8rem}.card ul{margin:.2em 0 .6em;padding-left:1.1em}.edfa a{color:#0a4f8f}"
    "@media print{body{margin:0}h2{break-before:page}figure,.card,tr{break-inside:avoid}"
    ".edfa{font-size:10px}}</style>"
)


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
    paths
        Every file written, ``report.html`` first. The same results give the same bytes.
    """
    return write_sections(store, config.title, expand(config), folder)


def write_sections(store: Any, title: str, cells: Sequence[Cell], folder: Path) -> list[Path]:
    """Write the report of these cells; without any, of everything in the store."""
    check_extra("plots", "the report of a study")
    counted, doubled = distinct(cells)
    results = View(store, {cell.key for cell in counted} if counted else None)
    done = store.done()
    missing = [cell for cell in counted if cell.key not in done]
    parts = sections(results)
    files: dict[str, str | bytes] = {}
    for section in parts:
        for exhibit in section.present:
            files |= exhibit_files(exhibit)
    page = html.page(title, STYLE, *_page(parts, files, (len(counted), missing, doubled)))
    text = _markdown(title, parts, (len(counted), missing))
    pages: dict[str, str | bytes] = {"report.html": page, "report.md": text}
    return _write(folder, pages | files)


def _markdown(title: str, parts: Sequence[Section], counts: tuple[int, Sequence[Cell]]) -> str:
    """The report as Markdown, with links to the figures' files; long tables are folded."""
    total, missing = counts
    lines = [
        f"# {markdown_escaped(title)}",
        f"edfa {edfa.__version__}. {total - len(missing):,} of {total:,} cells are done.",
    ]
    lines += [f"- not done: {markdown_escaped(line)}" for line in summary(missing)]
    for part in parts:
        lines += [f"## {part.title}", *filter(None, [part.text])]
        for exhibit in part.present:
            if isinstance(exhibit, FigureExhibit):
                lines.append(
                    f"![{markdown_escaped(exhibit.caption)}](svg/{exhibit.name}.svg)\n\n*{markdown_escaped(exhibit.caption)}*"
                )
            else:
                table = f"**{markdown_escaped(exhibit.caption)}**\n\n{to_markdown(exhibit.frame, exhibit.digits)}"  # noqa: E501
                folded = (
                    f"<details><summary>{len(exhibit.frame)} "
                    f"rows</summary>\n\n{table}\n\n</details>"
                )
                lines.append(folded if len(exhibit.frame) > LONG else table)
    return "\n\n".join(lines) + "\n"


def sections(results: Results) -> list[Section]:
    """Everything a report shows: the paper's tables and figures, then the comparisons that it does
    not make.
    """
    return [*paper_sections(results), *beyond_sections(results)]


def distinct(cells: Sequence[Cell]) -> tuple[list[Cell], list[Cell]]:
    """Cells with different names, and those that have the names of an earlier one but other
    settings.

    Results are known by their names; two cells of one name would be taken for two seeds of one.
    """
    first: dict[tuple[Any, ...], Cell] = {}
    doubled = []
    for cell in cells:
        promise = cell.settings.get("promise") or {}
        names = (
            cell.measure,
            *cell.labels.values(),
            cell.seed,
            cell.settings.get("reading"),
            promise.get("name"),
        )
        if first.setdefault(names, cell) is not cell:
            doubled.append(cell)
    return list(first.values()), doubled


def exhibit_files(exhibit: TableExhibit | FigureExhibit) -> dict[str, str | bytes]:
    """The files of an exhibit: its data, and LaTeX for a table, SVG and PNG for a figure."""
    name = exhibit.name
    data: dict[str, str | bytes] = {f"csv/{name}.csv": to_csv(_safe(exhibit.frame))}
    if isinstance(exhibit, TableExhibit):
        return data | {
            f"latex/{name}.tex": to_latex(exhibit.frame, exhibit.caption, name, exhibit.digits)
        }
    svg, png = render(exhibit.draw, name, exhibit.size)
    return data | {f"svg/{name}.svg": svg, f"png/{name}.png": png}


def _safe(frame: pd.DataFrame) -> pd.DataFrame:
    """A table whose words no spreadsheet takes for formulas; numbers stay as they are."""
    words = frame.map(lambda cell: safe(cell) if isinstance(cell, str) else cell)
    return words.rename(columns=lambda name: safe(str(name)))


def _write(folder: Path, files: dict[str, str | bytes]) -> list[Path]:
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


def _page(
    parts: Sequence[Section],
    files: dict[str, str | bytes],
    counts: tuple[int, Sequence[Cell], Sequence[Cell]],
) -> Iterable[Markup]:
    """The page: contents, what is missing, the sections."""
    total, missing, doubled = counts
    links = [
        Markup('<a href="#{}">{}</a>').format(anchor(part.title), part.title) for part in parts
    ]
    yield Markup("<nav>{}{}</nav>").format(html.heading("Contents", 2), html.bullet_list(links))
    yield _heading("Missing results")
    if total:
        yield html.paragraph(f"{total - len(missing):,} of {total:,} cells are done.")
    for cells, words in (
        (missing, "not done"),
        (doubled, "left out: another cell has the same names but other settings"),
    ):
        if cells:
            yield html.paragraph(f"{len(cells):,} cells are {words}:")
            yield html.bullet_list(summary(cells))
    empty = [name for part in parts for name in part.left_out]
    if empty:
        yield html.paragraph("Without any results, and therefore left out:", ", ".join(empty))
    if not (missing or doubled or empty):
        yield html.paragraph("Nothing is missing.")
    for part in parts:
        yield from _section(part, files)


def summary(cells: Iterable[Cell]) -> list[str]:
    """Cells in a few lines: measure, data set and model, and how many of which policy and
    searcher.
    """
    groups: dict[str, dict[str, int]] = {}
    for cell in cells:
        labels = cell.labels
        rest = groups.setdefault(f"{cell.measure}, {labels['data']}, {labels['predictor']}", {})
        name = f"{labels['blanket']} {labels['policy']} {labels['searcher']}"
        rest[name] = rest.get(name, 0) + 1
    return [
        f"{group}: " + ", ".join(f"{name} ({count})" for name, count in sorted(rest.items()))
        for group, rest in sorted(groups.items())
    ]


def _section(part: Section, files: dict[str, str | bytes]) -> Iterable[Markup]:
    """One section: its words, its exhibits."""
    yield _heading(part.title)
    if part.text:
        yield html.paragraph(part.text)
    if not part.present:
        yield html.paragraph("There are no results for this section.")
    for exhibit in part.present:
        yield _table(exhibit) if isinstance(exhibit, TableExhibit) else _figure(exhibit, files)


def _table(exhibit: TableExhibit) -> Markup:
    shown = to_html(exhibit.frame, exhibit.caption, exhibit.digits)
    if len(exhibit.frame) > LONG:
        fold = Markup("<details><summary>{} ({} rows)</summary>{}</details>")
        shown = fold.format(
            exhibit.caption, len(exhibit.frame), to_html(exhibit.frame, "", exhibit.digits)
        )
    return Markup('<div class="wide" id="{}">{}</div>').format(exhibit.name, shown)


def _figure(exhibit: FigureExhibit, files: dict[str, str | bytes]) -> Markup:
    drawing = exhibit.words or inline(str(files[f"svg/{exhibit.name}.svg"]), exhibit.caption)
    template = Markup('<figure id="{}">{}<figcaption>{}</figcaption></figure>')
    return template.format(exhibit.name, drawing, exhibit.caption)


def _heading(title: str) -> Markup:
    return Markup('<h2 id="{}">{}</h2>').format(anchor(title), title)


def anchor(title: str) -> str:
    """A title as the name of a place on the page.

    >>> anchor("Ablations (Figures 14 to 17)")
    'ablations-figures-14-to-17'
    """
    return "-".join("".join(c if c.isalnum() else " " for c in title.lower()).split())
