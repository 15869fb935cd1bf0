"""The parts that a study file may name: those that edfa knows, and those that the file describes in
sections.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, make_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, cast, get_args, get_origin

from edfa.errors import SchemaError, UnknownNameError, UnreadableError, hint
from edfa.reading import parse
from edfa.resources import RESOURCES
from edfa_studies.cells import Part

if TYPE_CHECKING:
    from edfa.data.schema import Schema

__all__ = [
    "SECTIONS",
    "Parts",
    "check_directions",
    "check_promise",
    "known_parts",
    "name_place",
    "schema_of",
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
VARIANTS = {
    "policy": {
        "edfa-random": Part("edfa-random", "random-blanket"),
        "edfa-no-pc-priority": Part("edfa-no-pc-priority", "edfa", {"pc_first": False}),
        "edfa-structural": Part("edfa-structural", "edfa", {"rank": "cost"}),
    },
    "searcher": {"generative": Part("generative", "cvae")},
    "promise": {
        "paper": Part(
            "paper",
            "promise",
            {
                "alphas": [0.2, 0.3],
                "methods": ["paper", "cp", "wsr"],
                "signal": "uncertainty",
                "reference": "trajectory_end",
                "target": "all",
            },
        ),
        "advisor": Part(
            "advisor",
            "promise",
            {
                "alphas": [0.2, 0.3],
                "methods": ["cp", "hb", "wsr"],
                "signal": "auto",
                "reference": "trajectory_end",
                "target": "refused",
            },
        ),
    },
}
"""Names that stand for a registered part with settings of its own."""
GIVEN = {
    "predictor": {"favourable", "monotone"},
    "blanket": {"method"},
    "policy": {"desired_class"},
    "searcher": set[str](),
    "promise": {
        "alpha",
        "delta",
        "bound",
        "groups",
        "confidence_level",
        "group",
        "advisor",
        "favourable",
    },
}
"""Settings that a study gives by itself, so that a file cannot."""
E = TypeVar("E", bound=Exception)
SCALARS = (int, float, str, bool, NoneType)
Parts = Mapping[str, Mapping[str, Part]]
"""Every part by kind and name."""


def known_parts(sections: Mapping[str, Any], folder: Path, where: str) -> Parts:
    """Every part that a study file may name.

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
        If a setting is not one of the class, or has the wrong type.
    UnreadableError
        If a table or its card is not there.

    Examples
    --------
    >>> parts = known_parts({"predictors": {"small": {"of": "xgb", "n_estimators": 50}}}, Path(),
    ...     "my.toml")
    >>> parts["predictor"]["small"]
    Part(name='small', of='xgb', settings=mappingproxy({'n_estimators': 50}))
    """
    parts = {kind: _built_in(kind) for kind in SECTIONS}
    for kind, section in SECTIONS.items():
        for name, values in _tables(sections, section, where).items():
            key = f"{where}: {section}.{name}"
            make = _table_part if kind == "data" else _variant
            parts[kind][name] = make(kind, name, values, key, folder)
    return parts


def _tables(sections: Mapping[str, Any], section: str, where: str) -> dict[str, dict[str, Any]]:
    """The entries of a section, each of which must be a table of its own."""
    entries = sections.get(section, {})
    if not isinstance(entries, dict) or not all(
        isinstance(entry, dict) for entry in entries.values()
    ):
        raise SchemaError(f"{where}: {section}: one section for each name, [{section}.NAME]")
    return entries


def _built_in(kind: str) -> dict[str, Part]:
    """The parts of a kind that edfa knows."""
    return {name: Part(name, name) for name in _registered(kind)} | VARIANTS.get(kind, {})


def _registered(kind: str) -> Iterable[str]:
    """The names of a kind that stand for a class, a method or a data set of edfa."""
    from edfa.acquisition import POLICIES
    from edfa.blanket.discovery import METHODS
    from edfa.data.catalog import NAMES
    from edfa.predictors import PREDICTORS
    from edfa.recourse import SEARCHERS

    policies = (
        name for name in POLICIES if name != "fixed"
    )  # an order of questions belongs to one data set
    names = {
        "data": NAMES,
        "predictor": PREDICTORS,
        "blanket": METHODS,
        "policy": policies,
        "searcher": SEARCHERS,
    }
    return names.get(kind, ())


def _variant(kind: str, name: str, values: Mapping[str, Any], where: str, folder: Path) -> Part:
    """A part from its section: what it is ``of``, by default its own name or the paper's promise,
    and settings.
    """
    known = _built_in(kind)
    of = values.get("of", "paper" if kind == "promise" and name not in known else name)
    if of not in known:
        raise name_place(UnknownNameError(kind, of, known), where)
    base = known[of]
    settings = {key: value for key, value in values.items() if key != "of"}
    checked = _check_settings(kind, base.of, settings, where)
    return Part(name, base.of, {**base.settings, **checked})


def _table_part(kind: str, name: str, values: Mapping[str, Any], where: str, folder: Path) -> Part:
    """A table of one's own, with its card; paths start at the study file."""
    from edfa.data.schema import Schema
    from edfa.reading import sha256_of

    for key in ("of", "card"):
        if not isinstance(values.get(key), str):
            raise SchemaError(
                f"{where}.{key}: is missing; a table needs of = its file, and card = its card"
            )
    if unknown := [key for key in values if key not in ("of", "card")]:
        raise SchemaError(f"{where}.{unknown[0]}: no such key{hint(unknown[0], ('of', 'card'))}")
    rows, card = ((folder / values[key]).resolve() for key in ("of", "card"))
    for path in (rows, card):
        if not path.is_file():
            raise UnreadableError(f"{where}: there is no file {path}")
    Schema.read(card)  # refuses a card that contradicts itself
    # The content is part of what a cell is: results of a table that was changed are not taken for
    # results of this one.
    return Part(name, str(rows), {"card": str(card), "sha256": sha256_of(rows) + sha256_of(card)})


def _check_settings(kind: str, of: str, settings: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The settings of a part, as plain JSON, checked against what it is made with."""
    if not settings:
        return {}
    parsed = parse(
        RESOURCES.get(("settings", kind, of), lambda: _settings_class(kind, of)), settings, where
    )
    checked = {key: _plain(getattr(parsed, key)) for key in settings}
    threshold = checked.get("threshold")
    if threshold not in (None, "balanced") and (
        isinstance(threshold, str) or not 0 < threshold < 1
    ):
        raise SchemaError(
            f"{where}.threshold: a probability between 0 and 1, or 'balanced', not {threshold!r}"
        )
    return checked


def _plain(value: Any) -> Any:
    """A setting as JSON reads it back."""
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


def _settings_class(kind: str, of: str) -> type[Any]:
    """A dataclass with one field for each setting that a file may give to a part."""
    annotations: dict[str, Any] = {}
    for owner in _owners(kind, of):
        for name, annotation in _keywords(owner).items():
            if name not in GIVEN[kind] and (kept := _json_type(annotation)) is not None:
                annotations[name] = kept
    if kind == "predictor":
        annotations["threshold"] = (
            float | str
        )  # "balanced": the share of the training people's favourable class
    if kind == "policy" and hasattr(_owners(kind, of)[0], "fit_rows"):
        annotations["train_rows"] = int  # the largest number of training people that it learns from
    if kind == "promise":
        annotations |= {"alphas": tuple[float, ...], "methods": tuple[str, ...]}
    return make_dataclass(
        "Settings", [(name, kind, field(default=None)) for name, kind in annotations.items()]
    )


def _owners(kind: str, of: str) -> tuple[Callable[..., Any], ...]:
    """What takes the settings of a part as keywords."""
    from edfa.acquisition import POLICIES
    from edfa.blanket.discovery import Search
    from edfa.certification.rcps import RecourseCertifier
    from edfa.certification.replay import replay
    from edfa.predictors import PREDICTORS
    from edfa.recourse import SEARCHERS

    if kind == "blanket":
        return (Search,)
    if kind == "promise":
        return (RecourseCertifier, replay)
    registries: dict[str, Mapping[str, Any]] = {
        "predictor": PREDICTORS,
        "policy": POLICIES,
        "searcher": SEARCHERS,
    }
    return (registries[kind][of],)


def _keywords(owner: Callable[..., Any]) -> dict[str, Any]:
    """The annotation of each keyword that a function, or a class when it is made, takes."""
    takes = cast(Any, owner).__init__ if isinstance(owner, type) else owner
    return {
        name: annotation for name, annotation in takes.__annotations__.items() if name != "return"
    }


def _json_type(annotation: Any) -> Any:
    """The part of an annotation that a study file can hold; None if there is none."""
    if (origin := get_origin(annotation)) in (Union, UnionType):
        kept = [kind for kind in map(_json_type, get_args(annotation)) if kind is not None]
        return Union[tuple(kept)] if any(kind is not NoneType for kind in kept) else None  # noqa: UP007
    holds = (Literal, tuple, list, Sequence, Mapping)
    return annotation if annotation in SCALARS or origin in holds else None


def check_promise(promise: Mapping[str, Any], delta: float, where: str) -> None:
    """Refuse a promise that nobody could certify, before any work is spent."""
    from edfa.certification.rcps import RecourseCertifier
    from edfa.certification.replay import SIGNALS
    from edfa.errors import SettingError

    if promise["signal"] not in (*SIGNALS, "auto"):
        raise name_place(
            UnknownNameError("signal", promise["signal"], (*SIGNALS, "auto")), f"{where}.signal"
        )
    taken = set(_keywords(RecourseCertifier)) - {"signal"}
    settings = {key: value for key, value in promise.items() if key in taken}
    if not promise["alphas"] or not promise["methods"]:
        raise SchemaError(f"{where}: at least one of alphas and one of methods")
    for alpha in promise["alphas"]:
        for method in promise["methods"]:
            try:
                RecourseCertifier(alpha, delta, bound=method, **settings)
            except SettingError as error:
                raise name_place(error, where) from None


def check_directions(predictor: Part, sets: Iterable[Part], where: str) -> None:
    """Refuse a model that cannot obey the directions of a card, in the card's reading."""
    from edfa.predictors import PREDICTORS

    if "monotone" in _keywords(PREDICTORS[predictor.of]):
        return
    for data in sets:
        if any(feature.monotone for feature in schema_of(data)):
            raise SchemaError(
                f"{where}.predictor: {predictor.name} cannot obey the directions on the "
                f"card of {data.name}, which "
                "reading = 'card' asks for"
            )


def schema_of(data: Part) -> "Schema":
    """The schema of a data set, from its card alone."""
    from edfa.data.catalog import load_schema
    from edfa.data.schema import Schema

    card = data.settings.get("card")
    return load_schema(data.of) if card is None else Schema.read(card)


def name_place(error: E, where: str) -> E:
    """The same error, which now says where in the file it is."""
    error.args = (f"{where}: {error}",)
    return error
