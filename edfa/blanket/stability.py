"""How far to trust a blanket: how often its members return in half of the rows, and what other methods find."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import pandas as pd

from edfa.blanket.counts import Rows
from edfa.blanket.discover import METHODS, Method, Search, Settings, describe
from edfa.blanket.opening import open_source
from edfa.blanket.search import Progress
from edfa.blanket.units import Blanket
from edfa.errors import DataError

__all__ = ["Comparison", "Stability", "compare", "stability"]


@dataclass(frozen=True)
class Stability:
    """In what share of half-samples each feature was a member, and each spouse stood behind each child."""

    members: Mapping[str, float]
    pairs: Mapping[tuple[str, str], float]
    runs: int

    def frame(self) -> pd.DataFrame:
        """One row a member or pair, the steadiest first."""
        rows = [(name, "", share) for name, share in self.members.items()]
        rows += [(child, spouse, share) for (child, spouse), share in self.pairs.items()]
        return pd.DataFrame(rows, columns=["member", "spouse", "share"])

    def to_json(self) -> str:
        """As JSON; ``from_json`` reads it back, equal."""
        pairs = [[child, spouse, share] for (child, spouse), share in self.pairs.items()]
        return json.dumps({"version": 1, "runs": self.runs, "members": dict(self.members), "pairs": pairs})

    @classmethod
    def from_json(cls, text: str) -> "Stability":
        """Read what ``to_json`` wrote."""
        told = json.loads(text)
        return cls(told["members"], {(child, spouse): share for child, spouse, share in told["pairs"]}, told["runs"])

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
    **settings: Unpack[Settings],
) -> Stability:
    """Search ``B`` half-samples of the rows; the levels and quantiles are those of all rows."""
    if B < 1:
        raise DataError(f"at least one half-sample is needed, not {B}")
    search = Search(method, **settings)
    source, chosen, _ = open_source(table, target, None, keep_order=search.parity)
    if not isinstance(source, Rows):
        raise DataError("half-samples are drawn from a table in memory")
    random = np.random.default_rng(seed)
    members: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for run in range(B):
        half = source.take(np.sort(random.permutation(source.n)[: source.n // 2]))
        tester = search.tester(half)
        found = search.find(tester, tester.names.index(chosen))
        blanket = describe(tester, search, found, chosen)
        members.update(blanket.features)
        pairs.update((child, s) for child, spouses in blanket.units.items() for s in spouses)
        if progress:
            progress(run + 1, B)
    return Stability({m: c / B for m, c in members.most_common()}, {p: c / B for p, c in pairs.most_common()}, B)


@dataclass(frozen=True)
class Comparison:
    """Blankets of one target by several methods."""

    blankets: Mapping[str, Blanket]

    def frame(self) -> pd.DataFrame:
        """One row a feature, one column a method: ``pc`` (parent or child), or behind which child."""
        features = dict.fromkeys(f for b in self.blankets.values() for f in b.features)
        rows = [[_role(b, f) for b in self.blankets.values()] for f in features]
        return pd.DataFrame(rows, index=pd.Index(list(features), name="feature"), columns=list(self.blankets))

    def to_json(self) -> str:
        """As JSON; ``from_json`` reads it back, equal."""
        return json.dumps({method: json.loads(blanket.to_json()) for method, blanket in self.blankets.items()})

    @classmethod
    def from_json(cls, text: str) -> "Comparison":
        """Read what ``to_json`` wrote."""
        return cls({method: Blanket.from_json(json.dumps(told)) for method, told in json.loads(text).items()})

    def __str__(self) -> str:
        return str(self.frame().to_string())

    def _repr_html_(self) -> str:
        return str(self.frame().to_html())


def _role(blanket: Blanket, feature: str) -> str:
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
    **settings: Unpack[Settings],
) -> Comparison:
    """Several methods side by side; one tester with its caches serves them all."""
    searches = [Search(method, **settings) for method in methods]
    if not searches:
        raise DataError("name at least one method to compare")
    source, chosen, left_out = open_source(table, target, None, keep_order=searches[0].parity)
    tester = searches[0].tester(source)
    blankets: dict[str, Blanket] = {}
    for done, search in enumerate(searches):
        found = search.find(tester, tester.names.index(chosen))
        blankets[search.method] = describe(tester, search, found, chosen, left_out)
        if progress:
            progress(done + 1, len(searches))
    return Comparison(blankets)
