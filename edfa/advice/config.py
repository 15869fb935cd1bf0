"""Advisor files: the settings of an advisor in TOML, with the keys of study files.

Any keyword of ``Advisor`` that a file can hold is a key. ``[predictors.NAME]`` and
``[searchers.NAME]`` describe parts, as in study files: ``of`` names a registered class, the other
keys are its settings. ``[rules]``, or ``rules = "FILE"``, are the operator's rules; ``[model]`` is
a user model. Paths start at the folder of the file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from edfa.advice.advisor import Advisor
from edfa.data.rules import Rules
from edfa.errors import EdfaError, SchemaError, UnknownNameError
from edfa.predictors import PREDICTORS
from edfa.reading import parse, parse_toml, read_text
from edfa.recourse import SEARCHERS
from edfa.settings import Registry, settings_class

Described = Mapping[str, Mapping[str, Any]]
DESCRIBED: dict[str, tuple[str, Registry[Any], frozenset[str]]] = {
    "predictor": ("predictors", PREDICTORS, frozenset({"favourable", "monotone"})),
    "searcher": ("searchers", SEARCHERS, frozenset()),
}
"""By key: the section that describes such parts, the classes, and settings that the table gives."""


@dataclass(frozen=True)
class ModelFile:
    """A user model in a file; see ``edfa.wrap``.

    Parameters
    ----------
    file
        A .skops, .onnx, .ubj, .json or .txt file.
    classes
        The outcomes in the order of the model's probabilities.
    columns
        The columns in the model's order where it does not say them; ``"encoded"`` if it was fitted
        on a table's ``X``.
    like
        A .parquet file with a few rows of the frame it was fitted on, where it has categories.
    partial
        What the model says before everything is known.
    """

    file: str
    classes: tuple[str, ...] | None = None
    columns: str | tuple[str, ...] | None = None
    like: str | None = None
    partial: str = "distilled"


@dataclass(frozen=True)
class AdvisorFile:
    """What an advisor file says.

    Parameters
    ----------
    settings
        Keywords of ``Advisor``; those that the file leaves out are not there.
    model
        The user model that decides, with absolute paths; None: the predictor does.
    cap
        The largest number of rows; None: all.
    jobs
        Number of parallel jobs in the search for plans; -1: one for each processor.
    compare_free
        Whether to measure what the directions of the card cost in AUROC.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    model: ModelFile | None = None
    cap: int | None = None
    jobs: int = -1
    compare_free: bool = False


def read_advisor(path: str | Path) -> AdvisorFile:
    """Read an advisor file; see ``parse_advisor`` for what it raises."""
    path = Path(path)
    return parse_advisor(parse_toml(read_text(path), path.name), path.parent, path.name)


def parse_advisor(
    values: Mapping[str, Any], folder: Path = Path(), where: str = "advisor"
) -> AdvisorFile:
    """Check the settings of an advisor and make its parts.

    Parameters
    ----------
    values
        The keys and sections of an advisor file.
    folder
        Where paths start.
    where
        The name of the file, which error messages begin with.

    Raises
    ------
    SchemaError
        If a key is unknown or a value has the wrong type; the message has the nearest right key.
    UnknownNameError
        If ``of`` names no class.

    Examples
    --------
    >>> parse_advisor({"predictor": "small", "predictors": {"small": {"of": "xgb", "seed": 3}}})
    AdvisorFile(settings={'predictor': SubsetXGB(seed=3)}, model=None, cap=None, jobs=-1, compare_free=False)
    >>> parse_advisor({"polcy": "edfa"})
    Traceback (most recent call last):
        ...
    edfa.errors.SchemaError: advisor.polcy: no such key; did you mean 'policy'?
    """  # noqa: E501
    keys = settings_class(
        Advisor,
        predictors=Described,
        searchers=Described,
        rules=str | dict[str, Any],
        model=ModelFile,
        cap=int,
        jobs=int,
        compare_free=bool,
    )
    read = parse(keys, values, where)
    given = {key: getattr(read, key) for key in values}
    for key, (section, registry, left_out) in DESCRIBED.items():
        parts = {
            name: _part(name, part, registry, left_out, f"{where}: {section}.{name}")
            for name, part in given.pop(section, {}).items()
        }
        if given.get(key) in parts:
            given[key] = parts[given[key]]
    rules = given.pop("rules", None)
    if isinstance(rules, str):
        given["rules"] = Rules.read(folder / rules)
    elif rules is not None:
        given["rules"] = Rules.parse(rules, f"{where}: rules")
    apart = {key: given.pop(key) for key in ("cap", "jobs", "compare_free") if key in given}
    model = given.pop("model", None)
    if model is not None:
        if "predictor" in given:
            raise SchemaError(f"{where}: predictor: the user model of [model] decides, not another")
        like = model.like and str(folder / model.like)
        model = replace(model, file=str(folder / model.file), like=like)
    return AdvisorFile(given, model, **apart)


def _part(
    name: str,
    values: Mapping[str, Any],
    registry: Registry[Any],
    leave_out: frozenset[str],
    where: str,
) -> Any:
    """Make a predictor or searcher, not fitted, from its section.

    Parameters
    ----------
    name, values
        The name of the section, and its keys: ``of`` names the class, by default as the section
        is called; the others are settings.
    registry
        The classes by name.
    leave_out
        Settings that the table gives, not the file.
    where
        What error messages begin with.
    """
    of = values.get("of", name)
    if not isinstance(of, str) or of not in registry:
        raise SchemaError(f"{where}.of: {UnknownNameError(registry.what, of, registry)}")
    kind = registry[of]
    settings = {key: value for key, value in values.items() if key != "of"}
    checked = parse(settings_class(kind, leave_out=leave_out), settings, where)
    try:
        return kind(**{key: getattr(checked, key) for key in settings})
    except EdfaError as error:
        raise type(error)(f"{where}: {error}") from None
