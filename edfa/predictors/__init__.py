"""A model that answers from any subset of features."""

from typing import TYPE_CHECKING

import lazy_loader

from edfa.settings import Registry

if TYPE_CHECKING:
    from edfa.predictors.base import Predictor

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

PREDICTORS: Registry["Predictor"] = Registry(
    "predictor",
    {
        "xgb": "edfa.predictors.xgb:SubsetXGB",
        "ftt": "edfa.predictors.ftt:FTTransformer",
        "mlp": "edfa.predictors.mlp:MaskedMLP",
        "bn": "edfa.predictors.bn:BayesNet",
    },
)
"""What the command line and study files call each predictor; a new one is one file and one line
here.
"""
__all__ = [*__all__, "PREDICTORS"]
