"""What to change: plans that lead to another decision, and the searchers that find them.

Read first ``plans.py`` (``Plans``, a batch, and ``Plan``, a row of it), then ``find.py``
(``find_recourse``) and ``searcher.py`` (the contract of searchers and the problem they are given);
the algorithms are in ``searchers``, one a file. ``action_set.py`` says which values may be
proposed, ``plan_filter.py`` which plans make sense, ``survival.py`` how likely a plan is to hold
once more is known, ``reasons.py`` why there is none, ``metrics.py`` how good plans are.
"""

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
