import edfa.data.rules
import edfa.settings

from .find import find_recourse as find_recourse
from .metrics import PlanQuality as PlanQuality
from .metrics import add_plausibility as add_plausibility
from .metrics import evaluate_plans as evaluate_plans
from .plans import Plan as Plan
from .plans import Plans as Plans
from .searcher import Searcher as Searcher
from .searchers.cvae import CVAE as CVAE
from .searchers.dice import DiCE as DiCE
from .searchers.nearest import Nearest as Nearest
from .searchers.nice import NICE as NICE
from .searchers.probe import PROBE as PROBE
from .searchers.survival import SurvivalSearch as SurvivalSearch
from .survival import add_survival as add_survival

Rules = edfa.data.rules.Rules
SEARCHERS: edfa.settings.Registry[Searcher]
