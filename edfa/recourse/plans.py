"""Plans: what to change, from what to what, with what it takes and what is known about it. No plan has a reason."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from edfa.people import People, Provenance
from edfa.recourse import plans_json
from edfa.recourse.plan import Change, NoPlan, Plan
from edfa.text import html
from edfa.typing import AnyArray, BoolArray, Float32Array, Float64Array, Int64Array, IntArray

__all__ = ["Plans"]

SHOWN = 20  # plans in a notebook


@dataclass(frozen=True, eq=False, repr=False)
class Plans:
    """The plans of a batch of people, in columns; those of one person in one state stand together, best first.

    ``of`` is the row of ``people`` that a plan is for, ``to`` what changes (NaN: nothing), in encoded units;
    ``decision`` is what the model decides about each of the people today. ``reasons`` has an entry for everybody
    without a plan. ``provenance`` is what brought the people here and what found the plans; it is not written to files.
    """

    people: People
    decision: Int64Array
    of: Int64Array
    to: Float32Array
    low: Float32Array
    high: Float32Array
    reached: Int64Array
    probability_before: Float64Array
    probability_after: Float64Array
    l0: Int64Array
    l2: Float64Array
    heom: Float64Array
    effort: Float64Array
    valid: BoolArray
    donor: Int64Array
    reasons: Mapping[int, NoPlan]
    inlier: Float64Array | None = None
    inlier_base: Float64Array | None = None
    invalidation: Float64Array | None = None
    survival: Float64Array | None = None
    survival_error: Float64Array | None = None
    provenance: Provenance = field(default_factory=Provenance, repr=False)

    def __len__(self) -> int:
        return len(self.of)

    def __repr__(self) -> str:
        return f"<Plans: {len(self):,} for {int(self.legal.sum()):,} of {len(self.people):,} people and states>"

    def __iter__(self) -> Iterator[Plan]:
        return (self[i] for i in range(len(self)))

    @cached_property
    def count(self) -> Int64Array:
        """How many plans each of the people has."""
        return np.bincount(self.of, minlength=len(self.people)).astype(np.int64)

    @property
    def legal(self) -> BoolArray:
        """Which of the people have a plan."""
        return self.count > 0

    @cached_property
    def first(self) -> Int64Array:
        """Each of the people's best plan, or -1."""
        return np.where(self.legal, np.cumsum(self.count) - self.count, -1)

    @cached_property
    def number(self) -> Int64Array:
        """A plan's place among those of its person, from 0."""
        return np.asarray(np.arange(len(self)) - self.first[self.of])

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The same changes for the same person, seed and step have the same name."""
        keys = np.stack([np.asarray(self.people.person), np.asarray(self.people.seed), np.asarray(self.people.step)], 1)
        where = [np.flatnonzero(~np.isnan(row)) for row in self.to]
        told = (
            keys[i].tobytes() + w.tobytes() + row[w].tobytes()
            for i, w, row in zip(self.of, where, self.to, strict=True)
        )
        return tuple(hashlib.blake2b(t, digest_size=6).hexdigest() for t in told)

    def rows(self) -> Float32Array:
        """Everybody with a plan's changes made, a row a plan; what was not known stays so."""
        return np.where(np.isnan(self.to), self.people.X[self.of], self.to)

    def __getitem__(self, i: int) -> Plan:
        if not -len(self) <= i < len(self):
            raise IndexError(f"there are {len(self)} plans")
        i, names = i % len(self), self.people.schema.names
        row = int(self.of[i])
        facts, features = self.people.X[row], np.flatnonzero(~np.isnan(self.to[i]))
        person, seed, step = (int(np.asarray(n)[row]) for n in (self.people.person, self.people.seed, self.people.step))
        return Plan(
            id=self.ids[i],
            person=person,
            seed=seed,
            step=step,
            number=int(self.number[i]),
            changes=tuple(self._change(i, int(j), facts) for j in features),
            reached=self._class(int(self.reached[i])),
            probability_before=float(self.probability_before[i]),
            probability_after=float(self.probability_after[i]),
            l0=int(self.l0[i]),
            l2=float(self.l2[i]),
            heom=float(self.heom[i]),
            effort=float(self.effort[i]),
            valid=bool(self.valid[i]),
            donor=int(self.donor[i]) if self.donor[i] >= 0 else None,
            inlier=None if self.inlier is None else bool(self.inlier[i]),
            inlier_base=None if self.inlier_base is None else float(self.inlier_base[i]),
            invalidation=None if self.invalidation is None else float(self.invalidation[i]),
            survival=None if self.survival is None else float(self.survival[i]),
            survival_error=None if self.survival_error is None else float(self.survival_error[i]),
            unknown=tuple(names[j] for j in np.flatnonzero(np.isnan(facts))),
        )

    def _change(self, i: int, feature: int, facts: Float32Array) -> Change:
        name = self.people.schema.names[feature]
        codes = [facts[feature], self.to[i, feature]]
        if not np.isnan(self.low[i]):
            codes += [self.low[i], self.high[i]]
        column = self.people.encoder.columns[feature]
        return Change(name, *(column.decode_one(float(code)) for code in codes))

    def _class(self, code: int) -> str:
        return self.people.schema.classes[code]

    def of_person(self, person: int, *, seed: int | None = None, step: int | None = None) -> tuple[Plan, ...]:
        """One person's plans, of one state where seed or step are given."""
        fits = np.asarray(self.people.person) == person
        for numbers, desired_class in ((self.people.seed, seed), (self.people.step, step)):
            fits = fits if desired_class is None else fits & (np.asarray(numbers) == desired_class)
        return tuple(self[int(i)] for i in np.flatnonzero(fits[self.of]))

    def frame(self, *, changes_only: bool = True) -> pd.DataFrame:
        """One row a change, in people's words; or one row for every known fact, changed or not."""
        told = ~np.isnan(self.to) if changes_only else ~np.isnan(self.people.X[self.of])
        plan, feature = np.nonzero(told)
        row = self.of[plan]
        own, new = self.people.X[row, feature], self.to[plan, feature]
        new = np.where(np.isnan(new), own, new)
        columns: dict[str, AnyArray] = {
            "person": np.asarray(self.people.person)[row],
            "seed": np.asarray(self.people.seed)[row],
            "step": np.asarray(self.people.step)[row],
            "plan": self.number[plan],
            "feature": np.array(self.people.schema.names, dtype=object)[feature],
            "from": self.words(feature, own),
            "to": self.words(feature, new),
            "low": self.words(feature, np.where(np.isnan(self.to[plan, feature]), np.nan, self.low[plan])),
            "high": self.words(feature, np.where(np.isnan(self.to[plan, feature]), np.nan, self.high[plan])),
            "reached": np.array(self.people.schema.classes, dtype=object)[self.reached[plan]],
            "id": np.array(self.ids, dtype=object)[plan],
        }
        parts = ["probability_before", "probability_after", "l0", "l2", "heom", "effort", "valid", "donor"]
        parts += ["survival"] if self.survival is not None else []
        return pd.DataFrame(columns | {name: np.asarray(getattr(self, name))[plan] for name in parts})

    def words(self, feature: IntArray, codes: AnyArray) -> AnyArray:
        """Cells in people's words, each of its own feature; ``None`` where there is none."""
        found = np.full(len(codes), None, dtype=object)
        for j in np.unique(feature):
            rows = np.flatnonzero((feature == j) & ~np.isnan(codes))
            if len(rows):
                found[rows] = self.people.encoder.decode_cells(self.people.schema.names[j], codes[rows])
        return found

    def to_json(self) -> str:
        """As JSON, without the model; ``from_json`` reads it back."""
        return plans_json.dump(self)

    @classmethod
    def from_json(cls, text: str) -> "Plans":
        """Read what ``to_json`` wrote."""
        return cls(**plans_json.load(text))

    def _repr_html_(self) -> str:
        head = [">person", ">step", ">plan", "changes", ">effort", ">chance", "decision then"]
        rows = [
            [p.person, p.step, p.number, "; ".join(map(str, p.changes)), f"{p.effort:.2f}", p.chance, p.reached]
            for p, _ in zip(self, range(SHOWN), strict=False)
        ]
        more = f", of which {SHOWN} are shown" if len(self) > SHOWN else ""
        return html.fragment(html.table(head, rows, f"{repr(self)[1:-1]}{more}"))
