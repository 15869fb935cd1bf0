"""``discover``: from a table to its target's Markov blanket."""

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypedDict, Unpack

from threadpoolctl import ThreadpoolController

from edfa.blanket.bamb import bamb
from edfa.blanket.counts import Source
from edfa.blanket.eamb import eamb
from edfa.blanket.hiton import Symmetry, hiton_mb
from edfa.blanket.iamb import iamb
from edfa.blanket.independence import TESTS, CIResult, DataTester, Tester, TestName
from edfa.blanket.opening import open_source
from edfa.blanket.search import Found, Progress
from edfa.blanket.split import split
from edfa.blanket.units import Blanket, Evidence
from edfa.errors import SchemaError, UnknownNameError

__all__ = ["METHODS", "Method", "Search", "Settings", "discover"]

Method = Literal["hiton-mb", "bamb", "eamb", "iamb"]
METHODS: tuple[Method, ...] = ("hiton-mb", "bamb", "eamb", "iamb")


@cache
def _threads() -> Any:
    """The thread pools of the linear algebra libraries, looked up once."""
    return ThreadpoolController()


class Settings(TypedDict, total=False):
    """The settings of a search that ``discover``, ``stability`` and ``compare`` pass on; defaults at ``Search``."""

    test: TestName
    alpha: float
    max_condition: int
    min_effect: float
    symmetry: Symmetry
    recover: float
    parity: bool


@dataclass(frozen=True)
class Search:
    """How to search.

    ``test``: see ``edfa.blanket.independence``. ``alpha``: its level. ``max_condition``: the largest subset tried as a
    separating set. ``min_effect``: a dependence of fewer nats counts as none. ``symmetry``: HITON-MB keeps a child
    only if the target is near the child, too ("and"), or either way ("or"). ``recover``: the share of lost variables
    EAMB asks again. ``parity``: the authors' published behaviour, quirks included.
    """

    method: Method = "hiton-mb"
    test: TestName = "auto"
    alpha: float = 0.01
    max_condition: int = 3
    min_effect: float = 0.001
    symmetry: Symmetry = "none"
    recover: float = 0.25
    parity: bool = False

    def __post_init__(self) -> None:
        symmetries = ("none", "and", "or")
        choices = (
            ("method", self.method, METHODS),
            ("test", self.test, TESTS),
            ("symmetry", self.symmetry, symmetries),
        )
        for what, value, known in choices:
            if value not in known:
                raise UnknownNameError(what, value, known)
        if not 0 < self.alpha < 1:
            raise SchemaError(f"alpha is a level between 0 and 1, not {self.alpha}")
        if not 0 <= self.recover <= 1:
            raise SchemaError(f"recover is a share between 0 and 1, not {self.recover}")
        if self.max_condition < 1 or self.min_effect < 0:
            raise SchemaError("max_condition is at least 1 and min_effect at least 0")

    def tester(self, source: Source) -> DataTester:
        """A tester over a source; the authors rank by the statistic and know no smallest effect."""
        if self.parity:
            return DataTester(source, self.test, self.alpha, min_effect=0.0, rank="statistic")
        return DataTester(source, self.test, self.alpha, self.min_effect)

    def find(self, tester: Tester, target: int, progress: Progress | None = None) -> Found:
        """Run the method, on one thread: the systems are small, and more threads only wait for each other."""
        with _threads().limit(limits=1):
            return self._find(tester, target, progress)

    def _find(self, tester: Tester, target: int, progress: Progress | None) -> Found:
        k, parity = self.max_condition, self.parity
        if self.method == "hiton-mb":
            return hiton_mb(tester, target, k=k, symmetry=self.symmetry, parity=parity, progress=progress)
        if self.method == "bamb":
            return bamb(tester, target, k=k, parity=parity, progress=progress)
        if self.method == "eamb":
            return split(tester, target, eamb(tester, target, recover=self.recover, parity=parity), k, progress)
        return split(tester, target, iamb(tester, target, parity=parity), k, progress)


def discover(
    table: Any,
    method: Method = "hiton-mb",
    *,
    target: str | None = None,
    bins: int | None = None,
    progress: Progress | None = None,
    **settings: Unpack[Settings],
) -> Blanket:
    """The Markov blanket of a target in units.

    ``table`` is a Table, any data frame (then ``target`` is needed and kinds are inferred), or a source such as
    ``ParquetRows``. Any feature can be the target; a continuous one needs ``bins``, the number of quantile
    bins to cut it into. ``progress`` is called with what is done and what there is to do. Settings: see ``Search``.

    Examples
    --------
    >>> from edfa.data.synthetic import credit_story
    >>> print(discover(credit_story().table(20_000)))
    repays: 3 features in 2 units
    ├── late_payment
    │   └── wage_came_late
    └── savings
    """
    search = Search(method, **settings)
    source, chosen, left_out = open_source(table, target, bins, keep_order=search.parity)
    tester = search.tester(source)
    found = search.find(tester, tester.names.index(chosen), progress)
    return describe(tester, search, found, chosen, left_out)


def describe(tester: DataTester, search: Search, found: Found, target: str, left_out: tuple[str, ...] = ()) -> Blanket:
    """What was found, by name, each member with the weakest test it passed."""
    names, t = tester.names, tester.names.index(target)
    units = {names[c]: tuple(names[s] for s in spouses) for c, spouses in found.units.items()}
    behind: dict[int, list[int]] = {}
    for child, spouses in found.units.items():
        for s in spouses:
            behind.setdefault(s, []).append(child)
    members = dict.fromkeys([*found.pc, *behind, *found.unattached])
    return Blanket(
        target=target,
        units=units,
        unattached=tuple(names[u] for u in found.unattached),
        separating={names[x]: tuple(names[s] for s in given) for x, given in sorted(found.separating.items())},
        evidence={names[m]: _evidence(tester, m, t, behind.get(m, []), found) for m in members},
        method=search.method,
        test=search.test,
        alpha=search.alpha,
        n=tester.source.n,
        tests=tester.tests,
        left_out=left_out,
    )


def _evidence(tester: Tester, member: int, target: int, children: list[int], found: Found) -> Evidence:
    """A spouse's test is that of its collider; of all tests a parent or child passed, the one closest to failing."""
    if children:
        givens = [tuple(sorted({*found.separating[member], c})) for c in children]
        passed = [(tester.test(member, target, given), given) for given in givens]
    else:
        pair = (min(member, target), max(member, target))
        passed = [(r, key[2]) for key, r in tester.results.items() if key[:2] == pair and tester.significant(r)]
    if not passed:
        passed = [(tester.test(member, target), ())]
    result, given = max(passed, key=lambda item: (item[0].p, -item[0].effect))
    told: CIResult = result
    return Evidence(told.p, told.statistic, told.effect, told.test, tuple(tester.names[g] for g in given))
