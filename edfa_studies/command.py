"""``edfa study``: many cells, anywhere; what they take, how far they are, and the tables and
figures made of them.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edfa.commands.common import (
    EXIT_NO,
    AsJson,
    Output,
    Quiet,
    Scheduler,
    grid,
    show_progress,
)
from edfa.commands.completion import complete
from edfa.commands.examples import show_examples

if TYPE_CHECKING:
    import pandas as pd

    from edfa_studies.cells import Cell
    from edfa_studies.config import Study
    from edfa_studies.engine import Progress
    from edfa_studies.estimate import Estimate

IN_MEMORY = "sqlite://"
study = typer.Typer(
    name="study",
    help="Studies: plan, run, follow and report many measurements.",
    epilog=show_examples("study"),
    no_args_is_help=True,
    rich_markup_mode="rich",
)


def _complete_studies(incomplete: str) -> list[str]:
    """Names of shipped studies, for completion by the shell; nothing heavy is imported."""
    shipped = Path(__file__).parent / "configs"
    return complete(*sorted(path.stem for path in shipped.glob("*.toml")))(incomplete)


Config = Annotated[
    str,
    typer.Argument(
        metavar="STUDY",
        help="A study that ships with edfa (edfa study list), or a TOML file.",
        autocompletion=_complete_studies,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(help="Folder of the study; by default NAME-study.", show_default=False),
]
Where = Annotated[
    str | None,
    typer.Option(
        help=(
            "Store: an SQLite file or a URL (postgresql+psycopg://…); by "
            "default study.sqlite in the folder."
        )
    ),
]
CacheFolder = Annotated[
    Path | None,
    typer.Option(
        help="Folder of shared work; by default cache in the study's folder.", show_default=False
    ),
]
Only = Annotated[
    str | None,
    typer.Option(
        help=(
            'Some cells only, such as "data=german,policy=edfa"; repeat '
            "a key to allow several values."
        )
    ),
]


@study.command(name="list", epilog=show_examples("study list"))
def list_studies(as_json: AsJson = False, quiet: Quiet = False) -> None:
    """List the studies that ship with edfa."""
    from edfa.errors import MissingExtraError
    from edfa_studies.config import SHIPPED, expand, read_study

    output = Output(as_json, quiet)
    studies: list[dict[str, Any]] = []
    for one in map(read_study, SHIPPED):
        shown: dict[str, Any] = {"name": one.name, "cells": None, "title": one.title}
        try:
            shown["cells"] = len(expand(one))
        except MissingExtraError as error:  # says which extra it needs
            shown["title"] = str(error)
        studies.append(shown)
    output.write_json(studies=studies)
    rows = [[str(shown[key] or "") for key in ("name", "cells", "title")] for shown in studies]
    output.show(grid("", ("name", ">cells", "title"), rows))


@study.command(epilog=show_examples("study plan"))
def plan(
    config: Config,
    out: Out = None,
    store: Where = None,
    cache: CacheFolder = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show the cells of a study and an estimate of its time; nothing is run or written."""
    from edfa_studies.config import read_study
    from edfa_studies.estimate import estimate, measured_seconds
    from edfa_studies.products import ProductFolder

    output = Output(as_json, quiet)
    chosen = read_study(config)
    folder = _folder(chosen, out)
    status = _status(store or folder / "study.sqlite")
    result = estimate(
        chosen,
        measured_seconds(status),
        done=set(status.loc[status["status"] == "done", "key"]),
        made=ProductFolder(cache or folder / "cache").has,
    )
    output.write_json(**asdict(result), basis=result.basis, study=chosen.name, title=chosen.title)
    if output.people:
        _show_plan(output, chosen, result)


def _show_plan(output: Output, chosen: "Study", result: "Estimate") -> None:
    """The plan for people: grids, measures, shared work, and what is not on this machine."""
    from edfa.parallel import count_jobs
    from edfa_studies.config import expand

    rows = [
        [str(i), one.measure, f"{one.cells:,}", f"{one.new:,}", _duration(one.seconds), one.title]
        for i, one in enumerate(result.grids, 1)
    ]
    output.say(chosen.title, "", style="bold")
    output.show(grid("", (">grid", "measure", ">cells", ">new", ">time", "title"), rows))
    cells = expand(chosen)
    counts = Counter(cell.measure for cell in cells)
    measures = (f"{count:,} {measure}" for measure, count in counts.items())
    shared = (f"{one.kind} {one.count:,} ({_duration(one.seconds)})" for one in result.shared)
    done = f", {result.done:,} of them done" if result.done else ""
    jobs, seconds = count_jobs(-1), result.seconds
    output.say(
        "",
        f"cells: {', '.join(measures)}",
        f"shared work, done once: {', '.join(shared) or 'nothing left to make'}",
        f"in all: {len(cells):,} cells{done}; about {_duration(seconds)} of one processor core, "
        f"{_duration(seconds / jobs)} with {jobs} workers",
        f"An estimate, {result.basis}.",
    )
    _note_absent(output, cells)


@study.command(epilog=show_examples("study run"))
def run(
    config: Config,
    out: Out = None,
    store: Where = None,
    cache: CacheFolder = None,
    jobs: Annotated[int, typer.Option(help="Number of processes; -1 uses every processor.")] = -1,
    scheduler: Scheduler = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try failed cells again.")
    ] = False,
    only: Only = None,
    limit_minutes: Annotated[
        float | None,
        typer.Option(
            min=0, help="Start no new cell after this many minutes; the same command goes on later."
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measure the cells that are not done; exit code 3 if some have failed. Run again, it goes on
    where it stopped.
    """
    from edfa import __version__
    from edfa.writing import check_writable
    from edfa_studies.config import expand, read_study, select
    from edfa_studies.engine import run_study
    from edfa_studies.store import Store

    output = Output(as_json, quiet)
    chosen = read_study(config)
    cells = expand(chosen) if only is None else select(expand(chosen), only)
    folder = _folder(chosen, out)
    cache = cache or folder / "cache"
    check_writable(cache / "entry", made=True)
    _check_extras(cells)
    _note_absent(output, cells)
    start = time.perf_counter()
    with Store.open(store or folder / "study.sqlite") as opened, show_progress(output) as show:
        opened.note("title", chosen.title)
        opened.note("config", chosen.text)
        opened.note("edfa", __version__)
        progress = run_study(
            cells,
            opened,
            cache.resolve(),  # workers may be elsewhere
            jobs=jobs,
            scheduler=scheduler,
            retry_failed=retry_failed,
            progress=lambda now: show(
                "cells", now.total - now.skipped - now.left, now.total - now.skipped
            ),
            limit_seconds=None if limit_minutes is None else 60 * limit_minutes,
        )
    _tell_end(output, config, progress, time.perf_counter() - start, str(folder))
    if progress.failed:
        raise typer.Exit(EXIT_NO)


def _tell_end(
    output: Output, config: str, progress: "Progress", seconds: float, folder: str
) -> None:
    """What a run has done, and what is left."""
    total, done, before = progress.total, progress.done, progress.skipped
    failed, left = progress.failed, progress.left
    counts = {"total": total, "done": done, "before": before, "failed": failed, "left": left}
    output.write_json(folder=folder, **counts, seconds=seconds)
    earlier = f", {before:,} were done before" if before else ""
    output.say(f"{done:,} of {total:,} cells measured in {_duration(seconds)}{earlier}")
    if failed:
        output.say(
            f"{failed:,} failed; edfa study status {config} shows why, --retry-failed tries them "
            "again"
        )
    if left:
        output.say(f"{left:,} are left; run the same command again to go on")


@study.command(epilog=show_examples("study status"))
def status(
    config: Config,
    out: Out = None,
    store: Where = None,
    errors: Annotated[
        bool, typer.Option("--errors", help="Whole tracebacks of the cells that failed.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show how many cells are done, open and failed, and why these failed."""
    from edfa_studies.config import expand, read_study

    output = Output(as_json, quiet)
    chosen = read_study(config)
    cells = {cell.key: cell for cell in expand(chosen)}
    rows = (
        _status(store or _folder(chosen, out) / "study.sqlite")
        .set_index("key")
        .reindex(list(cells))
    )
    states = rows["status"].fillna("open")
    counts = {state: int((states == state).sum()) for state in ("done", "open", "failed")}
    failed = [
        {
            "cell": repr(cells[str(key)]),
            "key": key,
            "attempts": int(row["attempts"]),
            "error": str(row["error"]),
        }
        for key, row in rows[states == "failed"].iterrows()
    ]
    output.write_json(study=chosen.name, total=len(cells), **counts, failures=failed)
    output.say(", ".join(f"{count:,} {state}" for state, count in counts.items()))
    for one in failed:
        text = str(one["error"]).rstrip() or "no error message was stored"
        output.say(str(one["cell"]), text if errors else f"  {text.splitlines()[-1]}")


@study.command(epilog=show_examples("study report"))
def report(
    config: Config,
    out: Out = None,
    store: Where = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the tables and figures of what is done so far: HTML, Markdown, CSV, LaTeX, PNG and
    SVG.
    """
    from edfa.errors import UnavailableError
    from edfa.writing import check_writable
    from edfa_studies.config import read_study
    from edfa_studies.report import write_report
    from edfa_studies.store import Store

    output = Output(as_json, quiet)
    chosen = read_study(config)
    folder = _folder(chosen, out)
    place = store or folder / "study.sqlite"
    if not _is_there(place):
        raise UnavailableError(
            f"there are no results in {place}; run the study first: edfa study run {config}"
        )
    check_writable(folder / "report", made=True)
    with Store.open(place) as opened:
        paths = write_report(opened, chosen, folder / "report")
    output.say(f"wrote {len(paths):,} files to {folder / 'report'}")
    output.write_json(folder=str(folder / "report"), files=[str(path) for path in paths])


def _folder(chosen: "Study", out: Path | None) -> Path:
    """Where a study keeps its store, its cache and its report."""
    return Path(f"{chosen.name}-study") if out is None else out


def _is_there(place: str | Path) -> bool:
    """Whether there is a store to open; a server is taken to have one."""
    return "://" in str(place) or Path(place).is_file()


def _status(place: str | Path) -> "pd.DataFrame":
    """The status of a store's cells; no rows if there is no store yet, which is not begun here."""
    from edfa_studies.store import Store

    with Store.open(place if _is_there(place) else IN_MEMORY) as opened:
        return opened.status()


def _check_extras(cells: "Sequence[Cell]") -> None:
    """Refuse a study that needs what is not installed."""
    from importlib.util import find_spec

    from edfa.errors import MissingExtraError
    from edfa_studies.config import REGISTRIES

    for kind, registry in REGISTRIES.items():
        for name in {getattr(cell, kind).of for cell in cells} & set(registry):
            registry[name]  # its import says what is missing
    if any(cell.predictor.of == "bn" for cell in cells) and find_spec("pyagrum") is None:
        raise MissingExtraError("the predictor bn", "bn")


def _note_absent(output: Output, cells: "Sequence[Cell]") -> None:
    """Say which data sets will be fetched from OpenML, since they are not on this machine."""
    from edfa.data.catalog import NAMES, where

    names = dict.fromkeys(cell.data.of for cell in cells if cell.data.of in NAMES)
    if absent := [name for name in names if where(name) == "OpenML"]:
        output.say(
            f"not on this machine, to be fetched from OpenML: {', '.join(absent)} "
            "(EDFA_DATA names a folder)"
        )


def _duration(seconds: float) -> str:
    """A time in words, with two figures or so.

    >>> _duration(12.3), _duration(200), _duration(9000), _duration(200_000)
    ('12 s', '3 min', '2.5 h', '56 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 36_000 else f"{seconds / 3600:.0f} h"
