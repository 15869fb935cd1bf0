"""The parts that a study file may name: those that edfa knows, and those that the file describes in
sections.

Names are checked when a file is read, from registries that import nothing; settings when the study
is expanded into cells, because their types are those of the class.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from edfa.acquisition import POLICIES
from edfa.data.catalog import NAMES, load_schema
from edfa.data.schema import Schema
from edfa.errors import SchemaError, SettingError, UnknownNameError, UnreadableError
from edfa.predictors import PREDICTORS
from edfa.reading import RESOURCES, parse, sha256_of
from edfa.recourse import SEARCHERS
from edfa.settings import keywords, settings_class
from edfa_studies.cells import Part

__all__ = [
    "SECTIONS",
    "Parts",
    "check_directions",
    "check_promise",
    "check_settings",
    "known_parts",
    "name_place",
]

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


@dataclass(frozen=True)
class TableFiles:
    """A table of one's own in a study file: paths of its rows and of its card."""

    of: str
    card: str


def known_parts(
    sections: Mapping[str, Mapping[str, Mapping[str, Any]]], folder: Path, where: str
) -> Parts:
    """Every part that a study file may name; settings are taken as they are.

    Parameters
    ----------
    sections
        The file's sections, such as ``{"predictors": {"small": {"of": "xgb", "n_estimators":
        50}}}``. One that has the name of a part that edfa knows takes its place.
    folder
        Where the paths of tables start.
    where
        The name of the file, which error messages begin with.

    Raises
    ------
    UnknownNameError
        If ``of`` is not known.
    SchemaError
        If a table has no card, or its card contradicts itself.
    UnreadableError
        If a table or its card is not there.

    Examples
    --------
    >>> parts = known_parts({"predictors": {"small": {"of": "xgb", "n_estimators": 50}}}, Path(),
    ...     "my.toml")
    >>> parts["predictor"]["small"]
    Part(name='small', of='xgb', settings={'n_estimators': 50})
    """
    parts = {kind: dict(known) for kind, known in BUILT_IN.items()}
    for kind, section in SECTIONS.items():
        for name, values in sections.get(section, {}).items():
            place = f"{where}: {section}.{name}"
            if kind == "data":
                parts[kind][name] = _table(name, values, folder, place)
                continue
            known = BUILT_IN[kind]
            of = values.get("of", "paper" if kind == "promise" and name not in known else name)
            if of not in known:
                raise name_place(UnknownNameError(kind, of, known), place)
            settings = {key: value for key, value in values.items() if key != "of"}
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


def check_settings(kind: str, part: Part, where: str) -> Part:
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
    checked = {key: _plain(getattr(parsed, key)) for key in part.settings}
    threshold = checked.get("threshold")
    if threshold not in (None, "balanced") and (
        isinstance(threshold, str) or not 0 < threshold < 1
    ):
        raise SchemaError(
            f"{where}.threshold: a probability between 0 and 1, or 'balanced', not {threshold!r}"
        )
    return Part(part.name, part.of, checked)


def _plain(value: Any) -> Any:
    """A setting as JSON reads it back."""
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


def _settings_of(kind: str, of: str) -> type[Any]:
    """A dataclass with one field for each setting that a file may give to a part."""
    owners: tuple[Callable[..., Any], ...]
    more: dict[str, Any] = {}
    if kind == "blanket":
        from edfa.blanket.discovery import Search

        owners = (Search,)
    elif kind == "promise":
        from edfa.certification.rcps import RecourseCertifier
        from edfa.certification.replay import Against, replay

        owners = (RecourseCertifier, Against, replay)
        more = {"alphas": tuple[float, ...], "methods": tuple[str, ...]}
    else:
        owners = (REGISTRIES[kind][of],)
        if kind == "predictor":  # "balanced": the share of the training people's favourable class
            more = {"threshold": float | str}
        elif hasattr(owners[0], "fit_rows"):  # the largest number of people that it learns from
            more = {"train_rows": int}
    return settings_class(*owners, leave_out=GIVEN[kind], **more)


def check_promise(promise: Mapping[str, Any], delta: float, where: str) -> None:
    """Refuse a promise that nobody could certify, before any work is spent."""
    from edfa.certification.rcps import RecourseCertifier
    from edfa.certification.replay import SIGNALS

    signals = (*SIGNALS, "auto")
    if promise["signal"] not in signals:
        raise name_place(UnknownNameError("signal", promise["signal"], signals), f"{where}.signal")
    if not promise["alphas"] or not promise["methods"]:
        raise SchemaError(f"{where}: at least one of alphas and one of methods")
    taken = keywords(RecourseCertifier).keys() - {"signal"}
    settings = {key: value for key, value in promise.items() if key in taken}
    for alpha in promise["alphas"]:
        for method in promise["methods"]:
            try:
                RecourseCertifier(alpha, delta, bound=method, **settings)
            except SettingError as error:
                raise name_place(error, where) from None


def check_directions(predictor: Part, sets: Iterable[Part], where: str) -> None:
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


def name_place(error: E, where: str) -> E:
    """The same error, which now says where in the file it is."""
    error.args = (f"{where}: {error}",)
    return error
