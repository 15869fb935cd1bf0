import edfa.settings

from .base import Policy as Policy
from .dime import DIME as DIME
from .eddi import EDDI as EDDI
from .edfa import EDFA as EDFA
from .fixed import Fixed as Fixed
from .greedy import Greedy as Greedy
from .gsmrl import GSMRL as GSMRL
from .loop import Terms as Terms
from .loop import acquire as acquire
from .random import Random as Random
from .random import RandomBlanket as RandomBlanket
from .survival import SurvivalPolicy as SurvivalPolicy
from .trajectory import Trajectory as Trajectory

POLICIES: edfa.settings.Registry[Policy]
