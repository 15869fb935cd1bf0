import edfa.registry

from .constraints import Constraints as Constraints
from .find import find_recourse as find_recourse
from .metrics import assess as assess
from .metrics import plausible as plausible
from .plan import Plan as Plan
from .plans import Plans as Plans
from .searcher import Searcher as Searcher
from .searchers.cvae import CVAE as CVAE
from .searchers.dice import DiCE as DiCE
from .searchers.nearest import Nearest as Nearest
from .searchers.nice import NICE as NICE
from .searchers.probe import PROBE as PROBE
from .searchers.survival import SurvivalSearch as SurvivalSearch
from .survival import survive as survive

SEARCHERS: edfa.registry.Registry[Searcher]
