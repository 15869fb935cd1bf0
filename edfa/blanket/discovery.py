"""``discover``: from a table to the Markov blanket of its target.

``Search`` holds a method with its settings: it makes a tester of a table, runs the method, and
turns what was found into a ``Blanket`` with its evidence.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from threadpoolctl import ThreadpoolController

from edfa.blanket.bamb import bamb
from edfa.blanket.eamb import eamb
from edfa.blanket.hiton import Symmetry, hiton_mb
from edfa.blanket.iamb import iamb
from edfa.blanket.independence import TESTS, DataTester, Tester, TestName
from edfa.blanket.separation import IndexedBlanket, Progress
from edfa.blanket.sources.base import TableSource
from edfa.blanket.sources.open import open_source
from edfa.blanket.split_units import split_units
from edfa.blanket.units import Blanket, Evidence
from edfa.errors import SettingError, check_known

Method = Literal["hiton-mb", "bamb", "eamb", "iamb"]
METHODS: tuple[Method, ...] = get_args(Method)
LINEAR_ALGEBRA = ThreadpoolController()  # its libraries are loaded by the imports above


@dataclass(frozen=True)
class Search:
    """A method and its settings.

    Parameters
    ----------
    method
        ``"hiton-mb"``, ``"bamb"``, ``"eamb"`` or ``"iamb"``.
    test
        The test of conditional independence, see ``edfa.blanket.independence``.
    alpha
        The significance level of each test: the largest p-value of a dependence.
    max_condition
        The size of the largest subset tried as a separating set.
    min_effect
        The smallest effect of a dependence, in nats.
    symmetry
        HITON-MB keeps a child only if the target is among the child's own parents and children too
        (``"and"``), or if either finds the other (``"or"``).
    recover
        The share of lost variables that EAMB tests again.
    parity
        Whether to reproduce the authors' published behaviour, quirks included.
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
        choices = (
            ("method", self.method, METHODS),
            ("test", self.test, TESTS),
            ("symmetry", self.symmetry, get_args(Symmetry)),
        )
        for setting, value, known in choices:
            check_known(setting, value, known)
        if not 0 < self.alpha < 1:
            raise SettingError(f"alpha is a level between 0 and 1, not {self.alpha}")
        if not 0 <= self.recover <= 1:
            raise SettingError(f"recover is a share between 0 and 1, not {self.recover}")
        if self.max_condition < 1 or self.min_effect < 0:
            raise SettingError("max_condition is at least 1 and min_effect at least 0")

    def tester(self, source: TableSource) -> DataTester:
        """A tester of a table with these settings; the authors rank by the statistic and know no
        smallest effect.
        """
        if self.parity:
            return DataTester(source, self.test, self.alpha, 0.0, rank_by="statistic")
        return DataTester(source, self.test, self.alpha, self.min_effect)

    def find(self, tester: Tester, target: int, progress: Progress | None = None) -> IndexedBlanket:
        """Search the blanket of one column, as column indices.

        On one thread: the linear systems are small, and more threads only wait for each other.

        Parameters
        ----------
        tester
            Answers the tests of independence: one that ``tester`` made, or one of your own.
        target
            The position of the column in ``tester.names``.
        progress
            Called with the number of steps done and of all steps.
        """
        k, parity = self.max_condition, self.parity
        with LINEAR_ALGEBRA.limit(limits=1):
            if self.method == "hiton-mb":
                return hiton_mb(tester, target, k, self.symmetry, parity, progress)
            if self.method == "bamb":
                return bamb(tester, target, k, parity, progress)
            if self.method == "eamb":
                members = eamb(tester, target, self.recover, parity)
            else:
                members = iamb(tester, target, parity)
            return split_units(tester, target, members, k, progress)

    def discover(
        self,
        tester: DataTester,
        target: str,
        left_out: tuple[str, ...] = (),
        progress: Progress | None = None,
    ) -> Blanket:
        """Search the blanket of one column, by name, with the evidence for each member.

        Parameters
        ----------
        tester
            Tests the columns of the table; searches that share it share their tests.
        target
            The name of the column.
        left_out
            Names of columns that are constant, which the result mentions.
        progress
            Called with the number of steps done and of all steps.
        """
        names, of = tester.names, tester.names.index(target)
        found = self.find(tester, of, progress)
        units = {names[c]: tuple(names[s] for s in spouses) for c, spouses in found.units.items()}
        members = [*found.pc, *(s for spouses in found.units.values() for s in spouses)]
        return Blanket(
            target=target,
            units=units,
            unattached=tuple(names[u] for u in found.unattached),
            separating={
                names[x]: tuple(names[c] for c in s)
                for x, s in sorted(found.separating_sets.items())
            },
            evidence={
                names[m]: _evidence(tester, m, of, found)
                for m in dict.fromkeys([*members, *found.unattached])
            },
            method=self.method,
            test=self.test,
            alpha=self.alpha,
            n=tester.source.n,
            tests=len(tester.results),
            left_out=left_out,
        )


def discover(
    table: Any,
    method: Method = "hiton-mb",
    *,
    target: str | None = None,
    bins: int | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Blanket:
    """Find the Markov blanket of a target, in units.

    Parameters
    ----------
    table
        A Table, any data frame (then ``target`` is needed and kinds are inferred), or a source such
        as ``ParquetRows``.
    method
        ``"hiton-mb"``, ``"bamb"``, ``"eamb"`` or ``"iamb"``.
    target
        The feature whose blanket is searched; the table's outcome if None.
    bins
        The number of quantile bins to cut a continuous target into.
    progress
        Called with the number of steps done and of all steps.
    **settings
        The other settings of ``Search``: ``alpha`` (the significance level of each test, 0.01),
        ``test``, ``max_condition``, ``min_effect``, ``symmetry``, ``recover``, ``parity``.

    Returns
    -------
    Blanket
        The members in units, with the evidence for each.

    Raises
    ------
    SettingError, UnknownNameError
        If a setting cannot be, or there is no such method, test or column.
    TargetError
        If the target is constant, or continuous and ``bins`` is not given.
    DataError
        If the table has fewer than 30 rows, or holds what is neither number nor word.

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
    source, target, left_out = open_source(table, target, bins, keep_order=search.parity)
    return search.discover(search.tester(source), target, left_out, progress)


def _evidence(tester: Tester, member: int, target: int, blanket: IndexedBlanket) -> Evidence:
    """The test that came closest to excluding a member.

    For a spouse, of the tests given its separating set and one of its children; for a parent or
    child, of all significant tests of it and the target.
    """
    children = [child for child, spouses in blanket.units.items() if member in spouses]
    if children:
        # The published algorithms record no separating set for some spouses.
        separator = blanket.separating_sets.get(member, ())
        given = [tuple(sorted({*separator, child})) for child in children]
        passed = [(tester.test(member, target, conditions), conditions) for conditions in given]
    else:
        pair = (min(member, target), max(member, target))
        passed = [
            (r, key[2])
            for key, r in tester.results.items()
            if key[:2] == pair and tester.significant(r)
        ]
    if not passed:
        passed = [(tester.test(member, target), ())]
    weakest, conditions = max(passed, key=lambda item: (item[0].p, -item[0].effect))
    names = tuple(tester.names[c] for c in conditions)
    return Evidence(weakest.p, weakest.statistic, weakest.effect, weakest.test, names)
