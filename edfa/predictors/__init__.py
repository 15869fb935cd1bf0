"""Models that answer from any subset of features: NaN means not acquired.

Read first ``base.py``: ``Predictor``, which all models are, ``align``, which shows a model fewer
features, and ``ModelCache``. The models are ``xgb.py`` (boosted trees, ``boosting.py``), ``ftt.py``
and ``mlp.py`` (networks, ``neural.py``), ``bn.py`` (a Bayesian network) and ``user_model`` (a
fitted model that is never fitted again). ``committee.py`` learns a model again from other rows,
``conditional.py`` draws values that are not known.
"""

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
