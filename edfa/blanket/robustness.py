"""How far to trust a blanket: how often its members recur in half of the rows, and what other
methods find.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from edfa.blanket.discovery import METHODS, Method, Search
from edfa.blanket.separation import Progress
from edfa.blanket.sources.memory import MemoryRows
from edfa.blanket.sources.open import open_source
from edfa.blanket.units import Blanket
from edfa.errors import DataError, SettingError


@dataclass(frozen=True)
class Stability:
    """How often the members of a blanket recur in half-samples.

    Parameters
    ----------
    members
        The share of half-samples in which each feature was a member, the largest first.
    pairs
        The share in which each (child, spouse) was a pair, the largest first.
    runs
        The number of half-samples.
    """

    members: Mapping[str, float]
    pairs: Mapping[tuple[str, str], float]
    runs: int

    def frame(self) -> pd.DataFrame:
        """One row for each member, then each pair, the most frequent first; ``spouse`` is empty for
        members.
        """
        rows = [(name, "", share) for name, share in self.members.items()]
        rows += [(child, spouse, share) for (child, spouse), share in self.pairs.items()]
        return pd.DataFrame(rows, columns=["member", "spouse", "share"])

    def _repr_html_(self) -> str:
        return str(self.frame().to_html(index=False))


def stability(
    table: Any,
    method: Method = "hiton-mb",
    B: int = 20,  # noqa: N803  (the letter the literature uses)
    *,
    target: str | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> Stability:
    """Search the blanket in random halves of the rows.

    Parameters
    ----------
    table, method, target, **settings
        As for ``discover``. Levels and quantiles are those of all rows.
    B
        The number of half-samples.
    seed
        Decides which rows are in each half.
    progress
        Called with the number of halves done and ``B``.

    Raises
    ------
    SettingError
        If ``B`` is below 1, or a setting of ``discover`` cannot be.
    DataError
        If the rows are not in memory.

    Examples
    --------
    >>> from edfa.data.synthetic import credit_story
    >>> stability(credit_story().table(4_000), B=2).members["late_payment"]
    1.0
    """
    if B < 1:
        raise SettingError(f"at least one half-sample is needed, not {B}")
    search = Search(method, **settings)
    source, target, _ = open_source(table, target, None, keep_order=search.parity)
    if not isinstance(source, MemoryRows):
        raise DataError("half-samples are drawn from a table in memory")
    random = np.random.default_rng(seed)
    members: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for run in range(B):
        half = source.take(np.sort(random.permutation(source.n)[: source.n // 2]))
        blanket = search.discover(search.tester(half), target)
        members.update(blanket.features)
        pairs.update((child, s) for child, spouses in blanket.units.items() for s in spouses)
        if progress:
            progress(run + 1, B)
    return Stability(
        {m: c / B for m, c in members.most_common()}, {p: c / B for p, c in pairs.most_common()}, B
    )


@dataclass(frozen=True)
class Comparison:
    """Blankets of one target, by the method that found them."""

    blankets: Mapping[str, Blanket]

    def frame(self) -> pd.DataFrame:
        """One row for each feature, one column for each method: ``pc`` (parent or child), or behind
        which child.
        """
        features = dict.fromkeys(f for b in self.blankets.values() for f in b.features)
        index = pd.Index(list(features), name="feature")
        roles = {m: [_role(b, f) for f in features] for m, b in self.blankets.items()}
        return pd.DataFrame(roles, index=index)

    def __str__(self) -> str:
        return str(self.frame().to_string())

    def _repr_html_(self) -> str:
        return str(self.frame().to_html())


def _role(blanket: Blanket, feature: str) -> str:
    """The part a feature has in a blanket, in words; empty if it has none."""
    if feature in blanket.units:
        return "pc"
    children = [c for c, spouses in blanket.units.items() if feature in spouses]
    if children:
        return f"behind {', '.join(children)}"
    return "behind no child" if feature in blanket.unattached else ""


def compare(
    table: Any,
    methods: Sequence[Method] = METHODS,
    *,
    target: str | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Comparison:
    """Search the blanket of one target by several methods, which share their tests.

    Parameters
    ----------
    table, target, **settings
        As for ``discover``.
    methods
        The methods to compare.
    progress
        Called with the number of methods done and of all methods.

    Examples
    --------
    >>> from edfa.data.synthetic import credit_story
    >>> compared = compare(credit_story().table(4_000), methods=("hiton-mb", "iamb"))
    >>> compared.frame().loc["wage_came_late"].tolist()
    ['behind late_payment', 'behind late_payment']
    """
    searches = [Search(method, **settings) for method in methods]
    if not searches:
        raise SettingError("name at least one method to compare")
    source, target, left_out = open_source(table, target, None, keep_order=searches[0].parity)
    tester = searches[0].tester(source)
    blankets: dict[str, Blanket] = {}
    for done, search in enumerate(searches):
        blankets[search.method] = search.discover(tester, target, left_out)
        if progress:
            progress(done + 1, len(searches))
    return Comparison(blankets)
