"""Plans: what people can change, what it takes, what it leads to; or why there is none.

``Plans`` holds the plans of a batch of people in columns, encoded; ``plans[i]`` is one ``Plan``, in
people's words. ``Plan.to_dict`` is the one JSON form of a plan: receipts, files of advice, the API
and letters hold it, and ``Plans.to_json`` is made of such rows.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from itertools import islice
from typing import Any, Literal

import numpy as np
import pandas as pd

from edfa.blanket.units import Blanket
from edfa.data.encode import Encoder
from edfa.data.schema import Schema
from edfa.errors import DataError, EdfaError, UnreadableError
from edfa.people import Background, People, Provenance
from edfa.reading import parse
from edfa.recourse.action_set import Consequences
from edfa.text import html, summaries
from edfa.typing import NAN, AnyArray, BoolArray, Float32Array, Float64Array, Int64Array, IntArray

FORMAT_VERSION = 1
MAX_SHOWN = 20  # plans in a notebook
NUMBERS = ("probability_before", "probability_after", "l0", "l2", "heom", "effort")
OPTIONAL = (
    "inlier",
    "inlier_base",
    "invalidation",
    "survival",
    "survival_error",
    "help",
    "support",
    "support_share",
    "months",
)
PEOPLE = ("person", "seed", "step", "spent")
IN_BATCH = ("person", "seed", "step", "number")  # where a plan stands in its batch
Reason = Literal[
    "already_there",
    "rules",
    "too_few_people_there",
    "does_not_hold",
    "range_too_narrow",
    "only_locked_features_flip",
    "more_information_needed",
    "nothing_flips",
]


@dataclass(frozen=True)
class Change:
    """One changed fact, in people's words: its value ``before`` and ``after``.

    Any value from ``low`` to ``high`` does as well as ``after``. If one of the two is None, that
    end is open: with ``low`` None, ``high`` or less does. If both are, nothing is known of other
    values.

    ``enough_now`` is the value that turns today's decision, the others of the plan made, where
    ``after`` goes farther so that it should still hold later; it is ``before`` where this change is
    not needed today. None: ``after`` goes no farther, or nothing is known of that.
    """

    feature: str
    before: Any
    after: Any
    low: Any = None
    high: Any = None
    enough_now: Any = None

    def to_dict(self) -> dict[str, Any]:
        """As plain data; without ``low`` and ``high`` if both are None, and without ``enough_now``
        if it is.
        """
        content = asdict(self)
        if self.enough_now is None:
            del content["enough_now"]
        if self.low is None and self.high is None:
            del content["low"], content["high"]
        return content

    def __str__(self) -> str:
        if self.low is None and self.high is None:
            within = ""
        elif self.low is None or self.high is None:
            within = f" ({self.high} or less)" if self.low is None else f" ({self.low} or more)"
        else:
            within = "" if self.low == self.high else f" ({self.low} to {self.high})"
        return f"{self.feature}: {self.before} → {self.after}{within}"


@dataclass(frozen=True)
class Plan:
    """A set of changes for one person in one state of knowledge, after which the model decides
    otherwise.

    Parameters
    ----------
    id
        The same changes have the same id.
    changes
        What to change.
    reached
        The name of the class that is decided then.
    probability_before, probability_after
        The model's probability of that class, now and then.
    l0
        The number of changes.
    l2, heom
        The distance between before and after, each feature divided by its range among training
        people: ``l2`` counts label codes as numbers (the paper's), ``heom`` counts a changed
        category as one.
    effort
        In the card's units, times the person's weights.
    valid
        Whether the model, asked about the changed facts, decides as desired. False only from a
        searcher that breaks its promise.
    inlier, inlier_base
        Whether training people are like the result, and the share of real people of whom that is
        true; None unless ``edfa.recourse.add_plausibility`` was asked.
    invalidation
        The probability that the plan fails when its numbers are met only roughly; None unless it is
        from ``PROBE``.
    survival, survival_error
        The probability that decision and plan still hold when everything is known, and its standard
        error; None unless it is from ``SurvivalSearch`` or ``edfa.recourse.add_survival``.
    help
        The probability that then the person is refused as they are and granted with the plan; None
        unless it is from ``SurvivalSearch``.
    unknown
        The features that were not known.
    support, support_share
        The number of training people like this person with the plan made: of the nearest tenth on
        all known facts that the model sees (at least 100 people), those who have at least what the
        plan changes; and the share of them with the favourable outcome, None if there are no such
        people. Both are None in the paper's reading, and where no number ``k`` of plans was asked
        for.
    months
        How long the plan takes; 0: no time.
    person, seed, step, number
        The numbers of the person's row in the batch, and the rank among the person's plans, from 0.
        They are no part of what makes two plans equal, nor of ``to_dict``.
    """

    id: str
    changes: tuple[Change, ...]
    reached: str
    probability_before: float
    probability_after: float
    l0: int
    l2: float
    heom: float
    effort: float
    valid: bool
    unknown: tuple[str, ...] = ()
    inlier: bool | None = None
    inlier_base: float | None = None
    invalidation: float | None = None
    survival: float | None = None
    survival_error: float | None = None
    help: float | None = None
    support: int | None = None
    support_share: float | None = None
    months: float = 0.0
    person: int = field(default=0, compare=False)
    seed: int = field(default=0, compare=False)
    step: int = field(default=0, compare=False)
    number: int = field(default=0, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """As plain data for JSON, without what is None; ``from_dict`` reads it back, equal."""
        content = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in IN_BATCH}
        content |= {"changes": [change.to_dict() for change in self.changes]}
        content |= {"unknown": list(self.unknown)}
        return {name: value for name, value in content.items() if value is not None}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Plan":
        """Read what ``to_dict`` made; ``UnreadableError`` for anything else."""
        return parse(cls, content, "plan", UnreadableError)

    @property
    def chance(self) -> str:
        """The probability of the class that is reached, before and after, as text such as ``23% →
        68%``.
        """
        return f"{self.probability_before:.0%} → {self.probability_after:.0%}"

    def __str__(self) -> str:
        changes = [f"{c.feature}: {c.before} → {c.after}" for c in self.changes]
        return f"{', '.join(changes)} ({self.chance} {self.reached})"

    def _repr_html_(self) -> str:
        return summaries.plan_html(self)


@dataclass(frozen=True)
class NoPlan:
    """Why a person in one state of knowledge has no plan.

    ``person``, ``seed`` and ``step`` are the numbers of their row in the batch. ``reason`` is

    - ``"already_there"``: the decision is the desired one;
    - ``"rules"``: there would be a plan, but rules, the operator's or the person's, forbid it;
    - ``"too_few_people_there"``: there would be one, but too few training people are where it
      leads;
    - ``"does_not_hold"``: there would be one, but it fails a little further along, or works only
      because time passes meanwhile;
    - ``"range_too_narrow"``: a feature that may change would turn it, but at no value that may be
      proposed;
    - ``"only_locked_features_flip"``: only a feature that must not change would turn it;
    - ``"more_information_needed"``: nothing known turns it, but not everything is known: ``unlock``
      names the features to ask for, those first that a known spouse waits for;
    - ``"nothing_flips"``: nothing turns it.

    ``rules`` names the rules that stand in the way, as ``"max_changes = 1"``; ``loosening`` says
    the smallest loosening that would give a plan, and which. Both are empty if no rule does.
    """

    person: int
    seed: int
    step: int
    reason: Reason
    unlock: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    loosening: str = ""


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
    reasons
        A ``NoPlan`` for every row of ``people`` without a plan.
    inlier, inlier_base, invalidation, survival, survival_error, help, support, support_share
        As in ``Plan``; None if that was not asked for.
    months
        As in ``Plan``; None if that was not asked for.
    enough_now
        The values of ``Change.enough_now``, (plans, features), NaN for None. None unless the
        searcher looks for plans that last, and a number ``k`` of plans was asked for.
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
    reasons: Mapping[int, NoPlan]
    inlier: Float64Array | None = None
    inlier_base: Float64Array | None = None
    invalidation: Float64Array | None = None
    survival: Float64Array | None = None
    survival_error: Float64Array | None = None
    help: Float64Array | None = None
    support: Int64Array | None = None
    support_share: Float64Array | None = None
    months: Float64Array | None = None
    enough_now: Float32Array | None = None
    consequences: Consequences | None = field(default=None, repr=False)
    provenance: Provenance = field(default_factory=Provenance, repr=False)

    def __len__(self) -> int:
        return len(self.of)

    def __repr__(self) -> str:
        return (
            f"<Plans: {len(self):,} for {int(self.legal.sum()):,} of "
            f"{len(self.people):,} people and states>"
        )

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

    @property
    def first_survival(self) -> Float64Array:
        """The survival of each person's best plan, (people,); 1 where it was not estimated, and
        where there is none.
        """
        survival = np.ones(len(self.people))
        if self.survival is not None:
            survival[self.legal] = self.survival[self.first[self.legal]]
        return survival

    @cached_property
    def number(self) -> Int64Array:
        """The rank of each plan among its person's, from 0, (plans,)."""
        return np.arange(len(self)) - self.first[self.of]

    def _id(self, i: int) -> str:
        """A name for a plan; the same changes have the same one."""
        features = np.flatnonzero(~np.isnan(self.to[i]))
        content = features.astype(np.int64).tobytes() + self.to[i, features].tobytes()
        return hashlib.blake2b(content, digest_size=6).hexdigest()

    def rows(self) -> Float32Array:
        """The facts with each plan's changes made, (plans, features); NaN: not known, as before."""
        return self.make_changes(np.arange(len(self)), self.people.X[self.of])

    def make_changes(self, plans: IntArray, facts: Float32Array) -> Float32Array:
        """Rows with the changes of plans, and all that follows from them, made.

        Parameters
        ----------
        plans
            The plan to follow in each row, (n,), by index.
        facts
            Encoded facts, (n, features), which may be others than the plan was made for: all that
            is known later, say.

        Returns
        -------
        numpy.ndarray
            The changed rows, (n, features).
        """
        to = self.to[plans]
        if self.consequences is None:
            return np.where(np.isnan(to), facts, to)
        return self.consequences.apply(np.arange(to.shape[1]), facts, to)[0]

    def __getitem__(self, i: int) -> Plan:
        if not -len(self) <= i < len(self):
            raise IndexError(f"there are {len(self)} plans")
        return next(self._plans(np.array([i % len(self)])))

    def __iter__(self) -> Iterator[Plan]:
        return self._plans(np.arange(len(self)))

    def _plans(self, plans: IntArray) -> Iterator[Plan]:
        """Some of the plans, by index."""
        people, rows = self.people, self.of[plans]
        columns = [people.person[rows], people.seed[rows], people.step[rows], self.number[plans]]
        for content, place in zip(
            self.to_dicts(plans), np.transpose(columns).tolist(), strict=True
        ):
            content["changes"] = tuple(Change(**change) for change in content["changes"])
            content["unknown"] = tuple(content["unknown"])
            yield Plan(**content, **dict(zip(IN_BATCH, place, strict=True)))

    def _changes(self, plans: IntArray) -> tuple[IntArray, IntArray, dict[str, AnyArray]]:
        """Every change of some plans, by index: the position of its plan among ``plans``, its
        feature, and its ends in people's words, (changes,) each.
        """
        position, feature = np.nonzero(~np.isnan(self.to[plans]))
        plan = plans[position]
        cells = {
            "before": self.people.X[self.of[plan], feature],
            "after": self.to[plan, feature],
            "low": self.low[plan],
            "high": self.high[plan],
        }
        if self.enough_now is not None:
            cells["enough_now"] = self.enough_now[plan, feature]
        rows = {j: np.flatnonzero(feature == j) for j in {*feature.tolist()}}
        words = {name: self._words(rows, codes) for name, codes in cells.items()}
        return position, feature, words

    def to_dicts(self, plans: IntArray | None = None) -> list[dict[str, Any]]:
        """Plans as plain data for JSON, each as ``Plan.to_dict`` gives it.

        Parameters
        ----------
        plans
            The indices of the plans that are wanted, (n,); None: all of them.
        """
        chosen = np.arange(len(self)) if plans is None else plans
        rows, names = self.of[chosen], self.people.schema.names
        position, feature, words = self._changes(chosen)
        changes: list[list[dict[str, Any]]] = [[] for _ in chosen]
        ends = (part.tolist() for part in words.values())
        for i, j, *values in zip(position.tolist(), feature.tolist(), *ends, strict=True):
            changes[i].append(Change(names[j], *values).to_dict())
        present = [name for name in OPTIONAL if getattr(self, name) is not None]
        columns = {name: getattr(self, name)[chosen] for name in (*NUMBERS, *present, "valid")}
        if "inlier" in columns:
            columns["inlier"] = columns["inlier"] != 0
        numbers = zip(*(column.tolist() for column in columns.values()), strict=True)
        reached = np.array(self.people.schema.classes, dtype=object)[self.reached[chosen]]
        known, which = np.unique(~np.isnan(self.people.X[rows]), axis=0, return_inverse=True)
        unknown = [[names[j] for j in np.flatnonzero(~mask)] for mask in known]
        return [
            {"id": self._id(i), "changes": some, "reached": name}
            | {key: n for key, n in zip(columns, row, strict=True) if n == n}
            | {"unknown": unknown[case]}
            for i, some, name, row, case in zip(
                chosen.tolist(), changes, reached, numbers, which.ravel().tolist(), strict=True
            )
        ]

    def frame(self) -> pd.DataFrame:
        """One row for each change of each plan, in people's words.

        Returns
        -------
        pandas.DataFrame
            ``person``, ``seed``, ``step`` and ``plan`` say whose plan it is; ``feature``, ``from``,
            ``to``, ``low``, ``high`` and ``enough_now`` are the change; ``reached`` and ``id`` and
            all numbers are those of the plan. Numbers that were not asked for have no column.
        """
        plan, feature, words = self._changes(np.arange(len(self)))
        people, schema, row = self.people, self.people.schema, self.of[plan]
        columns: dict[str, AnyArray] = {
            "person": people.person[row],
            "seed": people.seed[row],
            "step": people.step[row],
            "plan": self.number[plan],
            "feature": np.array(schema.names, dtype=object)[feature],
            "from": words["before"],
            "to": words["after"],
            "low": words["low"],
            "high": words["high"],
            **({} if self.enough_now is None else {"enough_now": words["enough_now"]}),
            "reached": np.array(schema.classes, dtype=object)[self.reached[plan]],
            "id": np.array([self._id(i) for i in range(len(self))], dtype=object)[plan],
        }
        optional = "survival", "support", "support_share", "months"
        for name in (*NUMBERS, "valid", *optional):
            if (numbers := getattr(self, name)) is not None:
                columns[name] = numbers[plan]
        return pd.DataFrame(columns)

    def _words(self, rows: Mapping[int, IntArray], codes: AnyArray) -> AnyArray:
        """Encoded cells (n,) in people's words, ``rows`` of each feature; None for NaN."""
        words = np.full(len(codes), None, dtype=object)
        for j, all_rows in rows.items():
            some = all_rows[~np.isnan(codes[all_rows])]
            if len(some):
                name = self.people.schema.names[j]
                words[some] = self.people.encoder.decode_cells(name, codes[some])
        return words

    def to_json(self) -> str:
        """As JSON, without the model and the provenance; ``from_json`` reads it back.

        The plans are rows of ``Plan.to_dict``, each with the ``row`` of its person.
        """
        people = self.people
        cells = [[None if cell != cell else cell for cell in row] for row in people.X.tolist()]
        numbers = {name: getattr(people, name).tolist() for name in PEOPLE}
        content: dict[str, Any] = {
            "version": FORMAT_VERSION,
            "schema": json.loads(people.schema.to_json()),
            "encoder": json.loads(people.encoder.to_json()),
            "blanket": json.loads(people.blanket.to_json()) if people.blanket else None,
            "people": numbers | {"X": cells, "decision": self.decision.tolist()},
            "plans": [
                {"row": row} | plan
                for row, plan in zip(self.of.tolist(), self.to_dicts(), strict=True)
            ],
            "reasons": [asdict(reason) | {"row": row} for row, reason in self.reasons.items()],
        }
        return json.dumps(content, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Plans":
        """Read what ``to_json`` wrote.

        Plans that were read have no model: they can be shown, not searched for.

        Raises
        ------
        UnreadableError
            For any other text, another version, or if a part of it is damaged.
        """
        try:
            content = json.loads(text)
            version = content["version"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise UnreadableError("this text is not plans as to_json writes them") from None
        if version != FORMAT_VERSION:
            raise UnreadableError(
                f"these plans are of version {version}; version {FORMAT_VERSION} can be read"
            )
        try:
            people = _read_people(content)
            classes = len(people.schema.classes)
            return cls(
                people=people,
                decision=_codes(content["people"]["decision"], "people.decision", classes),
                reasons=_read_reasons(content["reasons"], len(people)),
                **read_columns(content["plans"], people),
            )
        except KeyError as error:
            raise UnreadableError(f"these plans are damaged: {error} is missing") from None
        except (EdfaError, ValueError, TypeError, AttributeError, OverflowError) as error:
            said = " ".join(str(error).split())
            raise UnreadableError(f"these plans are damaged: {said}") from None

    def _repr_html_(self) -> str:
        head = [">person", ">step", ">plan", "changes", ">effort", ">chance", "decision then"]
        rows = [
            [
                *(p.person, p.step, p.number, "; ".join(map(str, p.changes))),
                *(f"{p.effort:.2f}", p.chance, p.reached),
            ]
            for p in islice(self, MAX_SHOWN)
        ]
        more = f", of which {MAX_SHOWN} are shown" if len(self) > MAX_SHOWN else ""
        return html.fragment(html.table(head, rows, f"{repr(self)[1:-1]}{more}"))


def _read_people(content: Mapping[str, Any]) -> People:
    """The people that the plans are for, without a model."""
    schema = Schema.from_json(json.dumps(content["schema"]))
    blanket = Blanket.from_json(json.dumps(content["blanket"])) if content["blanket"] else None
    encoder = Encoder.from_json(json.dumps(content["encoder"]))
    numbers = content["people"]
    people = People(
        np.array(numbers["X"], dtype=float).reshape(-1, len(schema)),
        Background(schema, encoder, blanket=blanket),
        **{name: numbers[name] for name in PEOPLE},
    )
    if len(numbers["decision"]) != len(people):
        raise DataError(f"people.decision: {len(people)} codes are expected")
    return people


def read_columns(entries: Sequence[dict[str, Any]], people: People) -> dict[str, Any]:
    """The columns of ``Plans`` from the rows of plans.

    Parameters
    ----------
    entries
        Each a ``Plan.to_dict`` with the ``row`` of its person, which is taken out; none gives the
        columns of no plans.
    people
        The batch that the plans are for.
    """
    of = _codes([entry.pop("row") for entry in entries], "plans.row", len(people))
    plans = [Plan.from_dict(entry) for entry in entries]
    schema, count = people.schema, len(plans)
    columns: dict[str, Any] = {"of": of}
    columns["to"] = np.full((count, len(schema)), NAN)
    columns["low"], columns["high"] = np.full((2, count), NAN)
    if any(change.enough_now is not None for plan in plans for change in plan.changes):
        columns["enough_now"] = np.full((count, len(schema)), NAN)
    for i, plan in enumerate(plans):
        for change in plan.changes:
            encode = people.encoder[change.feature].encode_one
            columns["to"][i, schema.index(change.feature)] = encode(change.after)
            for end in ("low", "high"):
                if (value := getattr(change, end)) is not None:
                    columns[end][i] = encode(value)
            if change.enough_now is not None:
                columns["enough_now"][i, schema.index(change.feature)] = encode(change.enough_now)
    reached = [schema.classes.index(plan.reached) for plan in plans]
    columns["reached"] = np.array(reached, dtype=np.int64)
    columns["valid"] = np.array([plan.valid for plan in plans], dtype=bool)
    for name in (*NUMBERS, *OPTIONAL):
        values = [getattr(plan, name) for plan in plans]
        if name in (*NUMBERS, "months") or any(value is not None for value in values):
            columns[name] = np.array(values, dtype=np.int64 if name in ("l0", "support") else float)
    if "support" in columns:
        columns.setdefault("support_share", np.full(len(plans), np.nan))
    return columns


def _codes(values: Sequence[Any], name: str, limit: int) -> Int64Array:
    """Whole numbers from 0 to ``limit`` - 1."""
    codes = np.array(values, dtype=np.int64)
    if codes.ndim != 1 or (codes < 0).any() or (codes >= limit).any():
        raise DataError(f"{name}: whole numbers from 0 to {limit - 1} are expected")
    return codes


def _read_reasons(entries: Sequence[dict[str, Any]], people: int) -> dict[int, NoPlan]:
    """Why people have no plan, by row."""
    reasons: dict[int, NoPlan] = {}
    for entry in entries:
        row = entry.pop("row")
        if not (isinstance(row, int) and 0 <= row < people):
            raise DataError(f"reasons: there are {people} people, and row {row} is none of them")
        reasons[row] = parse(NoPlan, entry, "reasons")
    return reasons
