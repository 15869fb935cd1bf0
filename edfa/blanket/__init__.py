"""Which features matter, and in which units."""

from edfa.blanket.discover import METHODS, Method, Search, Settings, discover
from edfa.blanket.independence import TESTS, CIResult, DataTester, Tester
from edfa.blanket.stability import Comparison, Stability, compare, stability
from edfa.blanket.units import Blanket, Evidence

__all__ = [
    "METHODS",
    "TESTS",
    "Blanket",
    "CIResult",
    "Comparison",
    "DataTester",
    "Evidence",
    "Method",
    "Search",
    "Settings",
    "Stability",
    "Tester",
    "compare",
    "discover",
    "stability",
]
