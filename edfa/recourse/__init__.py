"""What to change: searchers by name, loaded when first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edfa.recourse.base import Searcher as Searcher
    from edfa.recourse.constraints import Constraints as Constraints
    from edfa.recourse.cvae import Generative as Generative
    from edfa.recourse.dice import DiCE as DiCE
    from edfa.recourse.find import find_recourse as find_recourse
    from edfa.recourse.lasting import Lasting as Lasting
    from edfa.recourse.nearest import Nearest as Nearest
    from edfa.recourse.nice import NICE as NICE
    from edfa.recourse.people import People as People
    from edfa.recourse.plans import Plan as Plan
    from edfa.recourse.plans import Plans as Plans
    from edfa.recourse.plausibility import plausible as plausible
    from edfa.recourse.probe import PROBE as PROBE
    from edfa.recourse.quality import assess as assess
    from edfa.recourse.survival import survive as survive

SEARCHERS = {
    "nearest": "Nearest",
    "lasting": "Lasting",
    "nice": "NICE",
    "probe": "PROBE",
    "dice": "DiCE",
    "generative": "Generative",
}
"""What the command line and study files call each searcher."""

_HOME = {
    "DiCE": "dice",
    "Generative": "cvae",
    "NICE": "nice",
    "PROBE": "probe",
    "Constraints": "constraints",
    "Lasting": "lasting",
    "Nearest": "nearest",
    "People": "people",
    "Plan": "plans",
    "Plans": "plans",
    "Searcher": "base",
    "assess": "quality",
    "find_recourse": "find",
    "plausible": "plausibility",
    "survive": "survival",
}
__all__ = ["SEARCHERS", "searcher", *_HOME]


def searcher(name: str) -> type["Searcher"]:
    """The class that a name stands for."""
    if name not in SEARCHERS:
        from edfa.errors import UnknownNameError

        raise UnknownNameError("searcher", name, SEARCHERS)
    found: type[Searcher] = __getattr__(SEARCHERS[name])
    return found


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        from edfa.errors import hint

        raise AttributeError(f"module 'edfa.recourse' has no attribute {name!r}{hint(name, _HOME)}")
    value = getattr(import_module(f"edfa.recourse.{_HOME[name]}"), name)
    globals()[name] = value
    return value
