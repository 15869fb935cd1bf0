"""Plans of a batch of people: what to change, what it takes, what it leads to; for people without
one, the reason.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from edfa.people import People, Provenance
from edfa.recourse import plans_json
from edfa.recourse.consequences import Consequences
from edfa.recourse.plan import Change, NoPlan, Plan
from edfa.text import html
from edfa.typing import AnyArray, BoolArray, Float32Array, Float64Array, Int64Array, IntArray

__all__ = ["Plans"]

SHOWN = 20  # plans in a notebook


@dataclass(frozen=True, eq=False, repr=False)
class Plans:
    """The plans of a batch of people, in columns; the plans of one row of ``people`` are adjacent,
    best first.

    ``plans[i]`` is one ``Plan`` in people's words; here everything is encoded. Columns are (plans,)
    unless said otherwise.

    Parameters
    ----------
    people
        The batch; a person in several states of knowledge has a row for each.
    decision
        The code of the class that is decided for each person today, (people,).
    of
        The row of ``people`` that each plan is for, ascending.
    to
        The new values, (plans, features); NaN: unchanged.
    low, high
        For plans of one change, the interval around the new value in which every value does as
        well; NaN: that end is open, or, if both are NaN, there is no such interval.
    reached
        The code of the class that is decided after the changes.
    probability_before, probability_after, l0, l2, heom, effort
        As in ``Plan``.
    valid
        Whether the model decides as desired after the changes, by its own answer.
    donor
        The training row whose values are taken; -1 if it is nobody's. It stays here: no plan, frame
        or file names it.
    reasons
        A ``NoPlan`` for every row of ``people`` without a plan.
    inlier, inlier_base, invalidation, survival, survival_error, support, support_share, months
        As in ``Plan``; None if that was not asked for.
    consequences
        What follows from changes by itself, for ``make_changes``; None: nothing does. Not written
        to files.
    provenance
        What brought the people here and what made the plans; not written to files.
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
    support: Int64Array | None = None
    support_share: Float64Array | None = None
    months: Float64Array | None = None
    consequences: Consequences | None = field(default=None, repr=False)
    provenance: Provenance = field(default_factory=Provenance, repr=False)

    def __len__(self) -> int:
        return len(self.of)

    def __repr__(self) -> str:
        return (
            f"<Plans: {len(self):,} for {int(self.legal.sum()):,} of "
            f"{len(self.people):,} people and states>"
        )

    def __iter__(self) -> Iterator[Plan]:
        return (self[i] for i in range(len(self)))

    @cached_property
    def count(self) -> Int64Array:
        """The number of plans of each person, (people,)."""
        return np.bincount(self.of, minlength=len(self.people)).astype(np.int64)

    @property
    def legal(self) -> BoolArray:
        """Which people have a plan, (people,)."""
        return self.count > 0

    @cached_property
    def first(self) -> Int64Array:
        """The index of each person's best plan, -1 if there is none, (people,)."""
        return np.where(self.legal, np.cumsum(self.count) - self.count, -1)

    @cached_property
    def number(self) -> Int64Array:
        """The rank of each plan among its person's, from 0, (plans,)."""
        return np.asarray(np.arange(len(self)) - self.first[self.of])

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """A name for each plan; the same changes for the same person, seed and step have the same
        one.
        """
        keys = np.stack(
            [
                np.asarray(self.people.person),
                np.asarray(self.people.seed),
                np.asarray(self.people.step),
            ],
            1,
        )
        changed = [np.flatnonzero(~np.isnan(row)) for row in self.to]
        contents = (
            keys[i].tobytes() + features.tobytes() + row[features].tobytes()
            for i, features, row in zip(self.of, changed, self.to, strict=True)
        )
        return tuple(hashlib.blake2b(content, digest_size=6).hexdigest() for content in contents)

    def rows(self) -> Float32Array:
        """The facts with each plan's changes made, (plans, features); NaN: not known, as before."""
        return self.make_changes(np.arange(len(self)), self.people.X[self.of])

    def make_changes(self, plans: IntArray, facts: Float32Array) -> Float32Array:
        """Rows of facts, (n, features), with the changes of ``plans`` (n,) and all that follows
        from them made.
        """
        to = self.to[plans]
        if self.consequences is None:
            return np.where(np.isnan(to), facts, to)
        return self.consequences.apply(np.arange(to.shape[1]), facts, to)[0]

    def __getitem__(self, i: int) -> Plan:
        if not -len(self) <= i < len(self):
            raise IndexError(f"there are {len(self)} plans")
        i, names = i % len(self), self.people.schema.names
        row = int(self.of[i])
        facts, features = self.people.X[row], np.flatnonzero(~np.isnan(self.to[i]))
        person, seed, step = (
            int(np.asarray(n)[row])
            for n in (self.people.person, self.people.seed, self.people.step)
        )
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
            inlier=None if self.inlier is None else bool(self.inlier[i]),
            inlier_base=None if self.inlier_base is None else float(self.inlier_base[i]),
            invalidation=None if self.invalidation is None else float(self.invalidation[i]),
            survival=None if self.survival is None else float(self.survival[i]),
            survival_error=None if self.survival_error is None else float(self.survival_error[i]),
            unknown=tuple(names[j] for j in np.flatnonzero(np.isnan(facts))),
            support=None if self.support is None else int(self.support[i]),
            support_share=self._support_share(i),
            months=0.0 if self.months is None else float(self.months[i]),
        )

    def _support_share(self, i: int) -> float | None:
        if self.support_share is None or np.isnan(self.support_share[i]):
            return None
        return float(self.support_share[i])

    def _change(self, i: int, feature: int, facts: Float32Array) -> Change:
        """What plan ``i`` does to one feature of a person with these facts, (features,)."""
        name = self.people.schema.names[feature]
        codes = [facts[feature], self.to[i, feature], self.low[i], self.high[i]]
        column = self.people.encoder.columns[feature]
        return Change(
            name, *(None if np.isnan(code) else column.decode_one(float(code)) for code in codes)
        )

    def _class(self, code: int) -> str:
        return self.people.schema.classes[code]

    def of_person(
        self, person: int, *, seed: int | None = None, step: int | None = None
    ) -> tuple[Plan, ...]:
        """One person's plans; of one seed or step alone, unless None."""
        fits = np.asarray(self.people.person) == person
        for numbers, number in ((self.people.seed, seed), (self.people.step, step)):
            fits = fits if number is None else fits & (np.asarray(numbers) == number)
        return tuple(self[int(i)] for i in np.flatnonzero(fits[self.of]))

    def frame(self, *, changes_only: bool = True) -> pd.DataFrame:
        """One row for each change of each plan, in people's words; or for each known fact, changed
        or not.
        """
        listed = ~np.isnan(self.to) if changes_only else ~np.isnan(self.people.X[self.of])
        plan, feature = np.nonzero(listed)
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
            "low": self.words(
                feature, np.where(np.isnan(self.to[plan, feature]), np.nan, self.low[plan])
            ),
            "high": self.words(
                feature, np.where(np.isnan(self.to[plan, feature]), np.nan, self.high[plan])
            ),
            "reached": np.array(self.people.schema.classes, dtype=object)[self.reached[plan]],
            "id": np.array(self.ids, dtype=object)[plan],
        }
        parts = ["probability_before", "probability_after", "l0", "l2", "heom", "effort", "valid"]
        optional = ("survival", "support", "support_share", "months")
        parts += [name for name in optional if getattr(self, name) is not None]
        return pd.DataFrame(
            columns | {name: np.asarray(getattr(self, name))[plan] for name in parts}
        )

    def words(self, feature: IntArray, codes: AnyArray) -> AnyArray:
        """Encoded cells (n,) in people's words, each of its own ``feature`` (n,); None for NaN."""
        words = np.full(len(codes), None, dtype=object)
        for j in np.unique(feature):
            rows = np.flatnonzero((feature == j) & ~np.isnan(codes))
            if len(rows):
                words[rows] = self.people.encoder.decode_cells(
                    self.people.schema.names[j], codes[rows]
                )
        return words

    def to_json(self) -> str:
        """As JSON, without the model; ``from_json`` reads it back."""
        return plans_json.dump(self)

    @classmethod
    def from_json(cls, text: str) -> "Plans":
        """Read what ``to_json`` wrote; ``UnreadableError`` for any other text, or if a part of it
        is damaged.
        """
        return cls(**plans_json.load(text))

    def _repr_html_(self) -> str:
        head = [">person", ">step", ">plan", "changes", ">effort", ">chance", "decision then"]
        rows = [
            [
                p.person,
                p.step,
                p.number,
                "; ".join(map(str, p.changes)),
                f"{p.effort:.2f}",
                p.chance,
                p.reached,
            ]
            for p, _ in zip(self, range(SHOWN), strict=False)
        ]
        more = f", of which {SHOWN} are shown" if len(self) > SHOWN else ""
        return html.fragment(html.table(head, rows, f"{repr(self)[1:-1]}{more}"))
