import edfa.settings

from .base import Predictor as Predictor
from .base import align as align
from .bn import BayesNet as BayesNet
from .ftt import FTTransformer as FTTransformer
from .mlp import MaskedMLP as MaskedMLP
from .user_model.model import UserModel as UserModel
from .user_model.model import wrap as wrap
from .xgb import SubsetXGB as SubsetXGB

PREDICTORS: edfa.settings.Registry[Predictor]
