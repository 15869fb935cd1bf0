"""What to change: plans, and the searchers that find them."""

from typing import TYPE_CHECKING

import lazy_loader

from edfa.data.rules import Rules
from edfa.settings import Registry

if TYPE_CHECKING:
    from edfa.recourse.searcher import Searcher

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

SEARCHERS: Registry["Searcher"] = Registry(
    "searcher",
    {
        "nearest": "edfa.recourse.searchers.nearest:Nearest",
        "survival": "edfa.recourse.searchers.survival:SurvivalSearch",
        "nice": "edfa.recourse.searchers.nice:NICE",
        "probe": "edfa.recourse.searchers.probe:PROBE",
        "dice": "edfa.recourse.searchers.dice:DiCE",
        "cvae": "edfa.recourse.searchers.cvae:CVAE",
    },
)
"""What the command line and study files call each searcher; a new one is one file and one line
here.
"""
__all__ = [*__all__, "SEARCHERS", "Rules"]
