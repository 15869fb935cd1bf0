"""Which fact to ask a person next, what they can change, and when they may act.

The public names below are loaded on first use, so that ``import edfa`` stays cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edfa.acquisition.dime import DIME as DIME
    from edfa.acquisition.eddi import EDDI as EDDI
    from edfa.acquisition.edfa import EDFA as EDFA
    from edfa.acquisition.fixed import Fixed as Fixed
    from edfa.acquisition.greedy import Greedy as Greedy
    from edfa.acquisition.gsmrl import GSMRL as GSMRL
    from edfa.acquisition.loop import acquire as acquire
    from edfa.acquisition.random import Random as Random
    from edfa.acquisition.random import RandomBlanket as RandomBlanket
    from edfa.acquisition.surviving import Surviving as Surviving
    from edfa.acquisition.trajectory import Trajectory as Trajectory
    from edfa.advice.interview import Interview as Interview
    from edfa.advice.receipt import Receipt as Receipt
    from edfa.advisor import Advisor as Advisor
    from edfa.blanket.discover import discover as discover
    from edfa.blanket.trust import compare as compare
    from edfa.blanket.trust import stability as stability
    from edfa.blanket.units import Blanket as Blanket
    from edfa.certification.certificate import Certificate as Certificate
    from edfa.certification.rcps import RecourseCertifier as RecourseCertifier
    from edfa.certification.rcps import certify as certify
    from edfa.data.catalog import load as load
    from edfa.data.clean import clean as clean
    from edfa.data.clean import summarise as summarise
    from edfa.data.encode import Encoder as Encoder
    from edfa.data.feature import Feature as Feature
    from edfa.data.schema import Schema as Schema
    from edfa.data.table import Table as Table
    from edfa.predictors.aligned import align as align
    from edfa.predictors.bn import BayesNet as BayesNet
    from edfa.predictors.ftt import FTTransformer as FTTransformer
    from edfa.predictors.mlp import MaskedMLP as MaskedMLP
    from edfa.predictors.xgb import SubsetXGB as SubsetXGB
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
    from edfa.recourse.probe import PROBE as PROBE
    from edfa.recourse.quality import assess as assess
    from edfa.recourse.survival import survive as survive

__version__ = "0.1.0"

_HOME = {
    "Advisor": "edfa.advisor",
    "Interview": "edfa.advice.interview",
    "Receipt": "edfa.advice.receipt",
    "RecourseCertifier": "edfa.certification.rcps",
    "Certificate": "edfa.certification.certificate",
    "certify": "edfa.certification.rcps",
    "assess": "edfa.recourse.quality",
    "Plans": "edfa.recourse.plans",
    "Plan": "edfa.recourse.plans",
    "People": "edfa.recourse.people",
    "Constraints": "edfa.recourse.constraints",
    "PROBE": "edfa.recourse.probe",
    "NICE": "edfa.recourse.nice",
    "DiCE": "edfa.recourse.dice",
    "Generative": "edfa.recourse.cvae",
    "Lasting": "edfa.recourse.lasting",
    "survive": "edfa.recourse.survival",
    "Nearest": "edfa.recourse.nearest",
    "find_recourse": "edfa.recourse.find",
    "Fixed": "edfa.acquisition.fixed",
    "GSMRL": "edfa.acquisition.gsmrl",
    "EDDI": "edfa.acquisition.eddi",
    "DIME": "edfa.acquisition.dime",
    "EDFA": "edfa.acquisition.edfa",
    "Greedy": "edfa.acquisition.greedy",
    "Random": "edfa.acquisition.random",
    "RandomBlanket": "edfa.acquisition.random",
    "Surviving": "edfa.acquisition.surviving",
    "Trajectory": "edfa.acquisition.trajectory",
    "acquire": "edfa.acquisition.loop",
    "align": "edfa.predictors.aligned",
    "BayesNet": "edfa.predictors.bn",
    "Blanket": "edfa.blanket.units",
    "Encoder": "edfa.data.encode",
    "FTTransformer": "edfa.predictors.ftt",
    "Feature": "edfa.data.feature",
    "MaskedMLP": "edfa.predictors.mlp",
    "Schema": "edfa.data.schema",
    "SubsetXGB": "edfa.predictors.xgb",
    "Table": "edfa.data.table",
    "clean": "edfa.data.clean",
    "compare": "edfa.blanket.trust",
    "discover": "edfa.blanket.discover",
    "load": "edfa.data.catalog",
    "stability": "edfa.blanket.trust",
    "summarise": "edfa.data.clean",
}
__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        from edfa.errors import hint

        raise AttributeError(f"module 'edfa' has no attribute {name!r}{hint(name, _HOME)}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
