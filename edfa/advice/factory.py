"""Names at the edge, objects inside: what an advisor is told to use becomes a model, a policy, a searcher."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from edfa.acquisition import POLICIES
from edfa.acquisition.base import Policy
from edfa.blanket.discovery import METHODS
from edfa.blanket.units import Blanket
from edfa.data.table import Table
from edfa.errors import SettingError, UnknownNameError
from edfa.predictors import PREDICTORS
from edfa.predictors.base import Predictor
from edfa.recourse import SEARCHERS
from edfa.recourse.searcher import Searcher
from edfa.recourse.searchers.survival import SurvivalSearch

__all__ = [
    "SEARCHER",
    "Threshold",
    "check_names",
    "make_policy",
    "make_predictor",
    "make_searcher",
    "name_of",
    "new_policy",
    "settings_of",
    "suits",
]

Threshold = float | str | None
SIGNALS = ("uncertainty", "plan", "survival")
SEARCHER = "survival"  # what an advisor uses unless it is told otherwise


def check_names(**chosen: Any) -> None:
    """Refuse names that nobody knows, and a threshold that is none, before any work is spent."""
    known: dict[str, Iterable[str]] = {
        "predictor": PREDICTORS,
        "policy": POLICIES,
        "searcher": SEARCHERS,
        "method": METHODS,
        "signal": SIGNALS,
    }
    for what, names in known.items():
        if isinstance(chosen[what], str) and chosen[what] not in names:
            raise UnknownNameError(what, chosen[what], names)
    if suits(chosen["searcher"])[1] != "survival" and chosen["signal"] == "survival":
        raise SettingError(f"signal 'survival' is known of plans of searcher='survival', not of {chosen['searcher']!r}")
    given = chosen["threshold"]
    if given not in (None, "balanced") and (isinstance(given, str) or not 0 < given < 1):
        raise SettingError(f"threshold: a chance between 0 and 1, or 'balanced', not {given!r}")


def suits(searcher: str | Searcher) -> tuple[str, str]:
    """The policy and the signal that go with a searcher: for advice that lasts, or the paper's."""
    lasting = searcher == "survival" or isinstance(searcher, SurvivalSearch)
    return ("survival", "survival") if lasting else ("edfa", "uncertainty")


def make_predictor(chosen: str | Predictor, table: Table, threshold: Threshold, seed: int) -> Predictor:
    """A model, fitted on the training part. An object gives its settings: it is fitted anew, on these rows alone."""
    if not isinstance(chosen, str | Predictor):
        raise SettingError(f"predictor: a name or a model, not {chosen!r}")
    model: Predictor = PREDICTORS[chosen](seed=seed) if isinstance(chosen, str) else clone(chosen)
    train, classes = table.train, len(table.schema.classes)
    if threshold is not None:
        if classes != 2:
            raise SettingError(f"threshold: it decides between two classes, not {classes}")
        model.threshold = _threshold(threshold, train)
    return model.fit(train.X, train.y)


def _threshold(threshold: float | str, train: Table) -> float:
    """From which chance of the second class on it is decided."""
    if threshold == "balanced":
        # A calibrated model that decides for what is likelier than in general has the best mean recall of the classes.
        return float((train.y == 1).mean())
    needed, second = float(threshold), train.schema.classes[1] == train.schema.favourable
    return needed if second else float(np.nextafter(1 - needed, 1))


def make_policy(
    chosen: str | Policy, blanket: Blanket, searcher: Searcher, predictor: Predictor, **options: Any
) -> Policy:
    """A policy; one by name that learns does so from the training part, with those of the ``options`` that it takes."""
    if isinstance(chosen, Policy):
        return chosen
    if not isinstance(chosen, str):
        raise SettingError(f"policy: a name or a policy, not {chosen!r}")
    made: Any = new_policy(chosen, blanket, searcher)
    if fit := getattr(made, "fit", None):
        given = {"table": searcher.train, "predictor": predictor, **options}
        fit(**{name: given[name] for name in inspect.signature(fit).parameters if name in given})
    policy: Policy = made
    return policy


def new_policy(name: str, blanket: Blanket, searcher: Searcher, **settings: Any) -> Policy:
    """A policy by name, with those of blanket, searcher and favourable class that it takes; it has learnt nothing."""
    kind = POLICIES[name]
    taken = inspect.signature(kind).parameters
    schema = searcher.train.schema
    given = {"blanket": blanket, "searcher": searcher, "wanted": schema.classes.index(schema.favourable)}
    made: Policy = kind(**({key: value for key, value in given.items() if key in taken} | settings))
    return made


def make_searcher(chosen: str | Searcher, table: Table) -> Searcher:
    """A searcher among the training people."""
    if isinstance(chosen, Searcher):
        return chosen
    if not isinstance(chosen, str):
        raise SettingError(f"searcher: a name or a searcher, not {chosen!r}")
    return SEARCHERS[chosen](table.train)


def settings_of(made: Policy | Searcher) -> dict[str, Any]:
    """The settings that make the same object again, as plain data; an error where some cannot be told."""
    found: dict[str, Any] = {}
    for name, parameter in inspect.signature(type(made)).parameters.items():
        if name in ("train", "blanket", "searcher", "progress"):  # these come with the advisor
            continue
        value = getattr(made, name, inspect.Parameter.empty)
        if value is inspect.Parameter.empty or not _plain(value):
            raise SettingError(
                f"an advisor with this {type(made).__name__} cannot be saved: its {name} is no plain setting; "
                "give it by name"
            )
        if value != parameter.default:
            found[name] = value
    return found


def _plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_plain(inner) for inner in value)
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _plain(inner) for key, inner in value.items())
    return value is None or isinstance(value, bool | int | float | str)


def name_of(made: Policy | Searcher) -> str:
    """What the tables of names call it."""
    return (POLICIES if isinstance(made, Policy) else SEARCHERS).name_of(type(made))
