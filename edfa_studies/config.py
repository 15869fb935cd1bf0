"""Study files in TOML: which cells are measured, checked as a whole before anything runs.

``read_study`` reads a file, ``expand`` makes its cells, and ``select`` chooses some of them. A file
has grids, each the cross of some lists of names, and sections that describe parts by these names.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from functools import cached_property
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from edfa.acquisition import POLICIES
from edfa.data.catalog import NAMES, load_schema
from edfa.data.schema import Schema
from edfa.errors import SchemaError, SettingError, UnknownNameError, UnreadableError, check_known
from edfa.predictors import PREDICTORS
from edfa.reading import LARGEST_SEED, MEGABYTE, RESOURCES, parse, parse_toml, read_text, sha256_of
from edfa.recourse import SEARCHERS
from edfa.settings import keywords, settings_class
from edfa_studies.cells import PARTS, Cell, Part

CONFIG_LIMIT = 4 * MEGABYTE
MOST_SEEDS = 10_000
SHIPPED = ("smoke", "demo", "paper", "full")
LISTS = (*PARTS, "promise")
MEASURES: dict[str, tuple[str, ...]] = {
    "sets": ("data", "blanket"),
    "growth": PARTS,
    "examples": PARTS,
    "promise": LISTS,
}
"""What can be measured, and which lists each measure is the cross of."""
NO_PART = Part("-", "-")
SECTIONS = {
    "data": "tables",
    "predictor": "predictors",
    "blanket": "blankets",
    "policy": "policies",
    "searcher": "searchers",
    "promise": "promises",
}
"""The section of a study file that describes parts of each kind."""
REGISTRIES: dict[str, Mapping[str, Any]] = {
    "predictor": PREDICTORS,
    "policy": POLICIES,
    "searcher": SEARCHERS,
}
METHODS = ("hiton-mb", "bamb", "eamb", "iamb")
PAPER_PROMISE = {
    "alphas": [0.2, 0.3],
    "methods": ["paper", "cp", "wsr"],
    "signal": "uncertainty",
    "reference": "trajectory_end",
    "target": "all",
}
ADVISOR_PROMISE = {"methods": ["cp", "hb", "wsr"], "signal": "auto", "target": "refused"}
BUILT_IN = {
    "data": {name: Part(name, name) for name in NAMES},
    "predictor": {name: Part(name, name) for name in PREDICTORS},
    "blanket": {name: Part(name, name) for name in METHODS},
    # "fixed" is left out: an order of questions belongs to one data set
    "policy": {name: Part(name, name) for name in POLICIES if name != "fixed"}
    | {
        "edfa-random": Part("edfa-random", "random-blanket"),
        "edfa-no-pc-priority": Part("edfa-no-pc-priority", "edfa", {"pc_first": False}),
        "edfa-structural": Part("edfa-structural", "edfa", {"rank": "cost"}),
    },
    "searcher": {name: Part(name, name) for name in SEARCHERS}
    | {"generative": Part("generative", "cvae")},
    "promise": {
        "paper": Part("paper", "promise", PAPER_PROMISE),
        "advisor": Part("advisor", "promise", PAPER_PROMISE | ADVISOR_PROMISE),
    },
}
"""The parts that edfa knows, and names for some of them with other settings."""
GIVEN = {
    "predictor": ("favourable", "monotone"),
    "blanket": ("method",),
    "policy": ("desired_class",),
    "searcher": (),
    "promise": tuple("alpha delta bound groups group judge advisor favourable".split()),
}
"""Settings that a study gives by itself, so that a file cannot."""
E = TypeVar("E", bound=Exception)
Parts = Mapping[str, Mapping[str, Part]]
"""Every part by kind and name."""
Count = Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class Grid:
    """Every combination of some lists, for one measure. Any of these but ``title`` may also stand
    at the top of a file, for all its grids.

    Parameters
    ----------
    measure
        ``"sets"`` (the data sets and their blankets), ``"growth"`` (recourse, accuracy and quality
        of plans while people are asked), ``"examples"`` (single people in words) or ``"promise"``
        (certificates).
    data, predictor, blanket, policy, searcher, promise
        Names of parts.
    seeds
        The number of draws of people: the seeds are 0, 1, ...
    people
        Test people drawn for each seed.
    calibration, promise_test
        For ``"promise"``: the largest number of calibration people, and of test people that
        certificates are held against.
    budget
        What may be spent on each person: a share up to 1 of the price of everything, or an amount.
    cap
        The largest number of rows of a data set; 0: all.
    split
        Seed of the split into training, calibration and test people, and of the rows that a cap
        keeps.
    delta
        The probability that a certificate is wrong.
    reading
        ``"paper"``: any other decision is recourse, everything in the blanket can be changed;
        ``"card"``: plans lead to the favourable class and obey the card's rules, models obey its
        directions.
    title
        What the grid is for.
    """

    measure: str
    data: tuple[str, ...]
    predictor: tuple[str, ...] = ("xgb",)
    blanket: tuple[str, ...] = ("eamb",)
    policy: tuple[str, ...] = ("edfa",)
    searcher: tuple[str, ...] = ("nearest",)
    promise: tuple[str, ...] = ("paper",)
    seeds: Annotated[int, Field(ge=1, le=MOST_SEEDS)] = 1
    people: Count = 100
    calibration: Count = 1000
    promise_test: Count = 1000
    budget: Annotated[float, Field(gt=0)] = 0.9
    cap: Annotated[int, Field(ge=0)] = 50_000
    split: Annotated[int, Field(ge=0, le=LARGEST_SEED)] = 0
    delta: Annotated[float, Field(gt=0, lt=1)] = 0.05
    reading: Literal["paper", "card"] = "paper"
    title: str = ""


SHARED_KEYS = [f.name for f in fields(Grid) if f.name not in ("measure", "title")]
"""The keys of a grid that may also stand at the top of a file."""
StudyFile = make_dataclass(
    "StudyFile",
    [
        ("grid", Annotated[list[dict[str, Any]], Field(min_length=1)]),
        *((key, Any, None) for key in SHARED_KEYS),  # checked with each grid
        ("title", str, ""),
        *((name, dict[str, dict[str, Any]], field(default=None)) for name in SECTIONS.values()),
    ],
)


@dataclass(frozen=True)
class Study:
    """A study: its grids and the parts that they name.

    Parameters
    ----------
    name
        The name of its file, without ``.toml``.
    title
        What people read above its tables.
    grids
        What is measured; cells that occur in two grids are measured once.
    parts
        Every part that may be named, by kind (``"data"``, ``"predictor"``, ...) and name, with
        settings as they stand in the file.
    text, file
        The file as it was read, and its name.
    """

    name: str
    title: str
    grids: tuple[Grid, ...]
    parts: Parts = field(repr=False)
    text: str = field(default="", repr=False)
    file: str = field(default="", repr=False)

    @cached_property
    def checked(self) -> Parts:
        """The parts with settings that were checked; SchemaError if one is wrong."""
        return {
            kind: {
                name: _check_settings(kind, part, f"{self.file}: {SECTIONS[kind]}.{name}")
                for name, part in parts.items()
            }
            for kind, parts in self.parts.items()
        }


def read_study(name: str | Path) -> Study:
    """Read a study.

    Parameters
    ----------
    name
        The name of a study that ships with edfa, or the path of a TOML file of one's own.

    Returns
    -------
    Study
        The study, whose keys, names and numbers are right; settings of parts are checked by
        ``expand``.

    Raises
    ------
    UnknownNameError
        If there is no such study, or the file names a part that is not known.
    SchemaError
        If a key of the file is unknown, missing or of the wrong type.

    Examples
    --------
    >>> read_study("smoke").name
    'smoke'
    >>> read_study("smok")
    Traceback (most recent call last):
        ...
    edfa.errors.UnknownNameError: no study named 'smok'; did you mean 'smoke'?
    """
    if str(name) in SHIPPED:
        path = Path(str(files("edfa_studies") / "configs" / f"{name}.toml"))
    elif (path := Path(name)).suffix != ".toml" and not path.is_file():
        raise UnknownNameError("study", name, SHIPPED)
    return parse_study(read_text(path, CONFIG_LIMIT), path)


def parse_study(text: str, path: Path) -> Study:
    """The study that a TOML text describes; ``path`` gives its name and the folder where its
    tables' paths start.

    Keys, names and numbers are checked here; the settings of parts in ``expand``, which imports
    their classes.

    Raises
    ------
    SchemaError
        If a key is unknown, missing or of the wrong type.
    UnknownNameError
        If a part is not known; the message has the nearest name.

    Examples
    --------
    >>> parse_study('[[grid]]\\nmeasure = "growth"\\ndata = ["german"]\\npolicy = ["edaf"]',
    ...     Path("my.toml"))
    Traceback (most recent call last):
        ...
    edfa.errors.UnknownNameError: my.toml: grid 1.policy: no policy named 'edaf'; did you mean 'edfa'?
    """  # noqa: E501
    where = path.name
    values = parse_toml(text, where)
    if isinstance(values.get("data"), dict):
        raise SchemaError(
            f"{where}: data: a list of names; a table of your own is described in [tables.NAME]"
        )
    try:
        parse(StudyFile, values, "")
    except SchemaError as error:
        raise _name_place(error, where) from None
    parts = _known_parts(values, path.parent, where)
    shared = {key: value for key, value in values.items() if key in SHARED_KEYS}
    grids = tuple(
        _grid(grid, shared, parts, f"{where}: grid {i}") for i, grid in enumerate(values["grid"], 1)
    )
    return Study(path.stem, values.get("title", path.stem), grids, parts, text, where)


def _grid(values: Mapping[str, Any], shared: Mapping[str, Any], parts: Parts, where: str) -> Grid:
    """Make one grid from its table in the file, checked.

    Parameters
    ----------
    values
        The keys of the grid.
    shared
        The keys at the top of the file, which hold where the grid has none.
    parts
        Every part that may be named.
    where
        The place in the file, for error messages.
    """
    measure = values.get("measure")
    if measure is not None:
        _check_known("measure", measure, MEASURES, f"{where}.measure")
    used = MEASURES.get(str(measure), LISTS)
    for key in LISTS:
        if key in values and key not in used:
            raise SchemaError(
                f"{where}.{key}: the measure {measure!r} does not use it; it uses {', '.join(used)}"
            )
    both = {**shared, **values}
    lists = {key: [both[key]] for key in LISTS if isinstance(both.get(key), str)}
    grid = parse(Grid, both | lists, where)  # one name is a list of one
    for key in used:
        if not getattr(grid, key):
            raise SchemaError(f"{where}.{key}: an empty list; nothing would be measured")
        for name in getattr(grid, key):
            what = "data set" if key == "data" else key
            _check_known(what, name, parts[key], f"{where}.{key}")
    return grid


@dataclass(frozen=True)
class TableFiles:
    """A table of one's own in a study file: paths of its rows and of its card."""

    of: str
    card: str


def _known_parts(
    sections: Mapping[str, Mapping[str, Mapping[str, Any]]], folder: Path, where: str
) -> Parts:
    """Every part that a study file may name; settings are taken as they are.

    Parameters
    ----------
    sections
        The sections of the file, such as ``{"predictors": {"small": {"of": "xgb", "n_estimators":
        50}}}``; one that has the name of a part that edfa knows takes its place.
    folder
        Where paths of tables start.
    where
        The name of the file, for error messages.
    """
    parts = {kind: dict(known) for kind, known in BUILT_IN.items()}
    for kind, section in SECTIONS.items():
        known = BUILT_IN[kind]
        for name, values in sections.get(section, {}).items():
            place = f"{where}: {section}.{name}"
            if kind == "data":
                parts[kind][name] = _table(name, values, folder, place)
                continue
            settings = dict(values)
            of = settings.pop("of", name if kind != "promise" or name in known else "paper")
            _check_known(kind, of, known, place)
            parts[kind][name] = Part(name, known[of].of, {**known[of].settings, **settings})
    return parts


def _table(name: str, values: Mapping[str, Any], folder: Path, where: str) -> Part:
    """A table of one's own, with its card; paths start at the study file."""
    given = parse(TableFiles, values, where)
    rows, card = ((folder / path).resolve() for path in (given.of, given.card))
    for path in (rows, card):
        if not path.is_file():
            raise UnreadableError(f"{where}: there is no file {path}")
    Schema.read(card)  # refuses a card that contradicts itself
    # The content is part of what a cell is: results of a table that was changed are not taken for
    # results of this one.
    return Part(name, str(rows), {"card": str(card), "sha256": sha256_of(rows) + sha256_of(card)})


def _check_settings(kind: str, part: Part, where: str) -> Part:
    """The part with its settings as plain JSON of the right types.

    Raises
    ------
    SchemaError
        If a setting is not one of the class, or has the wrong type; begins with ``where``.
    """
    if kind == "data" or not part.settings:
        return part
    fields = RESOURCES.get(("settings", kind, part.of), lambda: _settings_of(kind, part.of))
    parsed = parse(fields, part.settings, where)
    # As JSON reads them back, so that two ways of writing a setting are one cell.
    checked = json.loads(json.dumps({key: getattr(parsed, key) for key in part.settings}))
    threshold = checked.get("threshold")
    if threshold not in (None, "balanced") and (
        isinstance(threshold, str) or not 0 < threshold < 1
    ):
        raise SchemaError(
            f"{where}.threshold: a probability between 0 and 1, or 'balanced', not {threshold!r}"
        )
    return Part(part.name, part.of, checked)


def _settings_of(kind: str, of: str) -> type[Any]:
    """A dataclass with one field for each setting that a file may give to a part."""
    given = GIVEN[kind]
    if kind == "blanket":
        from edfa.blanket.discovery import Search

        return settings_class(Search, leave_out=given)
    if kind == "promise":
        from edfa.certification.rcps import RecourseCertifier
        from edfa.certification.replay import Against, replay

        lists = {"alphas": tuple[float, ...], "methods": tuple[str, ...]}
        return settings_class(RecourseCertifier, Against, replay, leave_out=given, **lists)
    owner, more = REGISTRIES[kind][of], dict[str, Any]()
    if kind == "predictor":  # "balanced": the share of the training people's favourable class
        more = {"threshold": float | str}
    elif not getattr(owner, "asks_model", True):
        # the largest number of people that a policy learns from, if it asks no model about them
        more = {"train_rows": int}
    return settings_class(owner, leave_out=given, **more)


def _check_promise(promise: Mapping[str, Any], delta: float, where: str) -> None:
    """Refuse a promise that nobody could certify, before any work is spent.

    Parameters
    ----------
    promise
        Its settings, with the lists ``alphas`` and ``methods``.
    delta
        The probability that a certificate may be wrong.
    where
        The place in the file, for error messages.
    """
    from edfa.certification.rcps import RecourseCertifier
    from edfa.certification.replay import SIGNALS

    _check_known("signal", promise["signal"], (*SIGNALS, "auto"), f"{where}.signal")
    if not promise["alphas"] or not promise["methods"]:
        raise SchemaError(f"{where}: at least one of alphas and one of methods")
    taken = keywords(RecourseCertifier).keys() - {"signal"}
    settings = {key: value for key, value in promise.items() if key in taken}
    for alpha in promise["alphas"]:
        for method in promise["methods"]:
            try:
                RecourseCertifier(alpha, delta, bound=method, **settings)
            except SettingError as error:
                raise _name_place(error, where) from None


def _check_directions(predictor: Part, sets: Iterable[Part], where: str) -> None:
    """Refuse a model that cannot obey the directions of a card, in the card's reading."""
    if "monotone" in keywords(PREDICTORS[predictor.of]):
        return
    for data in sets:
        card = data.settings.get("card")
        schema = load_schema(data.of) if card is None else Schema.read(card)
        if any(feature.monotone for feature in schema):
            raise SchemaError(
                f"{where}.predictor: {predictor.name} cannot obey the directions on the card of "
                f"{data.name}, which reading = 'card' asks for"
            )


def _check_known(what: str, name: str, known: Collection[str], where: str) -> None:
    """Refuse a name that is not known, with its place in the file and the nearest right one."""
    if name not in known:
        raise _name_place(UnknownNameError(what, name, known), where)


def _name_place(error: E, where: str) -> E:
    """The same error, which now says where in the file it is."""
    error.args = (f"{where}: {error}",)
    return error


def expand(study: Study) -> tuple[Cell, ...]:
    """Make the cells of a study.

    Those of the first seed come first, grid by grid, so that an unfinished study is a smaller one.
    A cell that occurs twice, under whatever names, is there once, under the first.

    Returns
    -------
    tuple of Cell
        The cells, with distinct keys.

    Raises
    ------
    SchemaError, SettingError
        If settings of a part are wrong or contradict each other, or a promise can never be
        certified.

    Examples
    --------
    >>> len(expand(read_study("smoke"))) > 10
    True
    """
    every = [cell for grid in study.grids for cell in cells_of(study, grid)]
    unique: dict[str, Cell] = {}
    for cell in sorted(every, key=lambda cell: cell.seed):
        unique.setdefault(cell.key, cell)
    return tuple(unique.values())


def cells_of(study: Study, grid: Grid) -> Iterator[Cell]:
    """Make the cells of one grid, seed by seed.

    Parameters
    ----------
    study
        The study.
    grid
        One of its grids.

    Yields
    ------
    Cell
        Every combination of the grid's lists; the same cell may be in another grid, too.
    """
    used = MEASURES[grid.measure]
    lists = [
        [study.checked[kind][name] for name in getattr(grid, kind)] if kind in used else [NO_PART]
        for kind in LISTS
    ]
    _check_parts(grid, lists, f"{study.file}: grid {study.grids.index(grid) + 1}")
    seeds = grid.seeds if "policy" in used else 1  # nothing is drawn where nobody is asked
    for seed, (*parts, promise) in product(range(seeds), product(*lists)):
        settings = _settings(grid, parts[-1], promise)
        named = dict(zip(PARTS, parts, strict=True))
        yield Cell(grid.measure, **named, seed=seed, settings=settings)


def _check_parts(grid: Grid, lists: Sequence[Sequence[Part]], where: str) -> None:
    """Refuse promises that nobody could certify, and models that cannot obey a card."""
    sets, predictors, *_, promises = lists
    if grid.measure == "promise":
        for promise in promises:
            _check_promise(promise.settings, grid.delta, f"{where}: promise {promise.name}")
            if promise.settings["target"] == "refused" and grid.reading != "card":
                raise SchemaError(
                    f"{where}.reading: the promise {promise.name!r} is about people who are "
                    "refused, so that a class must be the favourable one: reading = 'card'"
                )
    if grid.reading == "card" and grid.measure != "sets":
        for predictor in predictors:
            _check_directions(predictor, sets, where)


def _settings(grid: Grid, searcher: Part, promise: Part) -> dict[str, Any]:
    """What the result of a cell depends on beside its parts."""
    names = ["budget", "cap", "split", "reading"]
    if grid.measure != "promise":
        if "policy" in MEASURES[grid.measure]:
            names.append("people")
        return {name: getattr(grid, name) for name in names}
    chosen = {"name": promise.name, **promise.settings}
    if chosen["signal"] == "auto":  # the one that goes with the searcher, as in an advisor
        chosen["signal"] = "survival" if searcher.of == "survival" else "uncertainty"
    sizes = {"calibration": grid.calibration, "test": grid.promise_test}
    settings = {name: getattr(grid, name) for name in names}
    return settings | sizes | {"delta": grid.delta, "promise": chosen}


def select(cells: Sequence[Cell], only: str) -> tuple[Cell, ...]:
    """Choose cells by the names of their parts.

    Parameters
    ----------
    cells
        Cells of a study.
    only
        Pairs such as ``"data=german,policy=edfa"``, see ``Cell.description``; a key that is
        repeated allows either value.

    Returns
    -------
    tuple of Cell
        The cells that match all keys, in order.

    Raises
    ------
    SettingError
        If the text is not of that form, or nothing matches all of it.
    UnknownNameError
        If a key is none, or no cell has the value.

    Examples
    --------
    >>> cells = expand(read_study("smoke"))
    >>> {cell.data.name for cell in select(cells, "data=german,measure=growth")}
    {'german'}
    """
    described = [cell.description for cell in cells]
    wanted: dict[str, set[str]] = {}
    for pair in filter(None, map(str.strip, only.split(","))):
        key, equals, value = map(str.strip, pair.partition("="))
        if not equals:
            raise SettingError(f"only: pairs such as data=german,policy=edfa, not {pair!r}")
        if described:
            check_known("key for --only", key, described[0])
        known = dict.fromkeys(description[key] for description in described)
        check_known(f"{key} in this study", value, known)
        wanted.setdefault(key, set()).add(value)
    chosen = tuple(
        cell
        for cell, description in zip(cells, described, strict=True)
        if all(description[key] in values for key, values in wanted.items())
    )
    if not chosen:
        raise SettingError(f"--only: no cell of this study matches all of {only}")
    return chosen
