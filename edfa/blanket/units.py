"""The Markov blanket in units: each parent or child with the spouses that stand behind it
(Definition 4).

``Blanket`` is what ``discover`` returns; it is immutable, prints as a tree and is saved as JSON.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property

from markupsafe import Markup

from edfa.reading import parse
from edfa.text import html


@dataclass(frozen=True)
class Evidence:
    """The weakest test that a member passed: its dependence on the target.

    Parameters
    ----------
    p, statistic
        The p-value and the statistic.
    effect
        Conditional mutual information in nats.
    test
        The name of the test.
    given
        The features that it conditioned on.
    """

    p: float
    statistic: float
    effect: float
    test: str
    given: tuple[str, ...] = ()


@dataclass(frozen=True)
class Blanket:
    """Which features matter for the target, in which units, and on what evidence.

    Parameters
    ----------
    target
        The outcome.
    units
        Each parent or child with its spouses.
    unattached
        Members that stand behind no child.
    separating
        For other features, the features that made them independent of the target.
    evidence
        For each member the weakest test that it passed.
    method, test, alpha
        How it was found: the algorithm, the test of independence and its significance level.
    n, tests
        The number of rows, and of tests that were run.
    left_out
        Columns that are constant.

    Examples
    --------
    >>> blanket = Blanket("repays", {"savings": (), "late_payment": ("wage_came_late",)})
    >>> blanket.features
    ('savings', 'late_payment', 'wage_came_late')
    >>> print(blanket)
    repays: 3 features in 2 units
    ├── savings
    └── late_payment
        └── wage_came_late
    >>> Blanket.from_json(blanket.to_json()) == blanket
    True
    """

    target: str
    units: Mapping[str, tuple[str, ...]]
    unattached: tuple[str, ...] = ()
    separating: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    method: str = ""
    test: str = ""
    alpha: float = 0.01
    n: int = 0
    tests: int = 0
    left_out: tuple[str, ...] = ()

    @property
    def pc(self) -> tuple[str, ...]:
        """Parents and children, in the order of discovery."""
        return tuple(self.units)

    @property
    def spouses(self) -> tuple[str, ...]:
        """The spouses, each once, although one may stand behind several children."""
        return tuple(dict.fromkeys(s for spouses in self.units.values() for s in spouses))

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Every member: parents and children, then spouses, then unattached ones."""
        return tuple(dict.fromkeys((*self.pc, *self.spouses, *self.unattached)))

    def __len__(self) -> int:
        return len(self.features)

    def __contains__(self, name: object) -> bool:
        return name in self.features

    def __str__(self) -> str:
        units, count = len(self.units) + len(self.unattached), len(self)
        features = f"{count} feature{'s' * (count != 1)}"
        lines = [f"{self.target}: {features} in {units} unit{'s' * (units != 1)}"]
        behind_no_child = {f"{name} (behind no child)": () for name in self.unattached}
        for i, (head, spouses) in enumerate([*self.units.items(), *behind_no_child.items()], 1):
            lines.append(f"{'└' if i == units else '├'}── {head}")
            for j, spouse in enumerate(spouses, 1):
                edge = "└" if j == len(spouses) else "├"
                lines.append(f"{' ' if i == units else '│'}   {edge}── {spouse}")
        return "\n".join(lines)

    def to_json(self) -> str:
        """As JSON text; ``from_json`` reads it back as an equal blanket."""
        return json.dumps({"version": 1} | asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Blanket":
        """The blanket that ``to_json`` wrote."""
        values = json.loads(text)
        values.pop("version")
        return parse(cls, values, "blanket")

    def _repr_html_(self) -> str:
        """The tree, and the weakest test that each member passed."""
        rows = [
            [n, f"{e.p:.2g}", f"{e.effect:.4f}", e.test, ", ".join(e.given)]
            for n, e in self.evidence.items()
        ]
        head = ["member", ">p", ">effect (nats)", "test", "given"]
        evidence = [html.table(head, rows, "The weakest test each member passed")] if rows else []
        return html.fragment(Markup("<pre>{}</pre>").format(str(self)), *evidence)
