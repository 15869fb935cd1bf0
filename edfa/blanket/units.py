"""The Markov blanket in units: each parent or child with the spouses that stand behind it (Definition 4)."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from html import escape

from edfa.checked import checked

__all__ = ["Blanket", "Evidence"]


@dataclass(frozen=True)
class Evidence:
    """The weakest test that a member passed: its dependence on the target given ``given``."""

    p: float
    statistic: float
    effect: float
    test: str
    given: tuple[str, ...] = ()


@dataclass(frozen=True)
class Blanket:
    """Which features matter for the target, in which units, and on what evidence.

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
        """The spouses, each once; one may stand behind several children."""
        return tuple(dict.fromkeys(s for behind in self.units.values() for s in behind))

    @property
    def features(self) -> tuple[str, ...]:
        """Every member."""
        return tuple(dict.fromkeys((*self.pc, *self.spouses, *self.unattached)))

    def __len__(self) -> int:
        return len(self.features)

    def __contains__(self, name: object) -> bool:
        return name in self.features

    def __str__(self) -> str:
        units = len(self.units) + len(self.unattached)
        count = len(self)
        lines = [f"{self.target}: {count} feature{'s' * (count != 1)} in {units} unit{'s' * (units != 1)}"]
        heads = [*self.units.items(), *((u, ()) for u in self.unattached)]
        for i, (head, behind) in enumerate(heads):
            last = i + 1 == len(heads)
            lone = " (behind no child)" if head in self.unattached else ""
            lines.append(f"{'└' if last else '├'}── {head}{lone}")
            for j, spouse in enumerate(behind):
                lines.append(f"{' ' if last else '│'}   {'└' if j + 1 == len(behind) else '├'}── {spouse}")
        return "\n".join(lines)

    def to_json(self) -> str:
        """As JSON; ``from_json`` reads it back, equal."""
        return json.dumps({"version": 1} | asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Blanket":
        """Read what ``to_json`` wrote."""
        values = json.loads(text)
        values.pop("version")
        return checked(cls, values, "blanket")

    def _repr_html_(self) -> str:
        return f"{self._svg()}{self._evidence_html()}"

    def _svg(self) -> str:
        """The target on the left, its parents and children in the middle, spouses on the right."""
        rows: list[tuple[str, str]] = []
        for head, behind in [*self.units.items(), *((u, ()) for u in self.unattached)]:
            rows += [(head if i == 0 else "", s) for i, s in enumerate(behind or ("",))]
        height, middle = 30 * max(len(rows), 1) + 10, 15 * max(len(rows), 1) + 5
        parts = [_box(10, middle, self.target, "#dbe7f5")]
        above = 0
        for i, (head, spouse) in enumerate(rows):
            y = 30 * i + 20
            if head:
                above = y
                parts += [_line(170, middle, 210, y, head in self.unattached), _box(210, y, head, "#e6f2e1")]
            if spouse:
                parts += [_line(370, above, 410, y, True), _box(410, y, spouse, "#f7efd9")]
        size = f'width="580" height="{height}"'
        title = f"<title>Markov blanket of {escape(self.target)}</title>"
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">{title}{"".join(parts)}</svg>'

    def _evidence_html(self) -> str:
        rows = [
            f"<tr><td>{escape(name)}</td><td>{e.p:.2g}</td><td>{e.effect:.4f}</td><td>{escape(e.test)}</td>"
            f"<td>{escape(', '.join(e.given))}</td></tr>"
            for name, e in self.evidence.items()
        ]
        head = "<tr><th>member</th><th>p</th><th>effect (nats)</th><th>test</th><th>given</th></tr>"
        return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>" if rows else ""


def _box(x: int, y: int, text: str, fill: str) -> str:
    shown = escape(text if len(text) <= 22 else text[:21] + "…")
    shape = f'<rect x="{x}" y="{y - 11}" width="160" height="22" rx="6" fill="{fill}" stroke="#666"/>'
    style = 'font-size="11" font-family="sans-serif" text-anchor="middle"'
    return f'<g><title>{escape(text)}</title>{shape}<text x="{x + 80}" y="{y + 4}" {style}>{shown}</text></g>'


def _line(x1: int, y1: int, x2: int, y2: int, dashed: bool) -> str:
    dash = ' stroke-dasharray="4 3"' if dashed else ""
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#666"{dash}/>'
