"""What the operator sees of many interviews: counts, made in one pass and in bounded memory.

``summarise`` counts; ``hide_small`` hides groups in which single people could be recognised.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from edfa.data.schema import Schema
from edfa_serve.store import StoredInterview, utc_now

LEAST_PEOPLE_IN_A_CELL = 20  # people in a cell that is shown
CLOCK = timedelta(days=30)  # for a letter, since a refusal was shown
MOST_DUE = 50  # letters that are listed
MOST_LEVELS = 50  # of a group


@dataclass(frozen=True)
class LetterDue:
    """An interview in which a refusal was shown and no letter was written.

    Parameters
    ----------
    interview
        The id of the interview.
    shown, until
        When the refusal was shown first, and the end of the 30 days for the letter; in UTC.
    decided
        The day of the decision; empty if none was declared.
    """

    interview: str
    shown: datetime
    until: datetime
    decided: str = ""


@dataclass
class Summary:
    """Counts of interviews.

    Parameters
    ----------
    interviews, finished
        How many there are, and how many are finished.
    days
        Interviews by the day they began, such as ``2026-03-01``.
    steps
        Interviews by the number of questions that were put and how they stand: ``"act"`` (the
        person was told that they may act), ``"granted"`` or ``"nothing"`` (they were promised that
        ending), ``"stopped"`` or ``"open"``.
    asked, declined
        How often each feature was asked or told, and declined.
    acting
        People who were told that they may act.
    let_down, other_let_down
        How many of these, and how many others, reported that the plan did not hold.
    groups
        By feature and level: people, refused ones, and those who may act.
    due
        The first ``MOST_DUE`` letters that are due.
    owed, overdue
        How many letters are due at all, and how many of them are past their time.
    """

    interviews: int = 0
    finished: int = 0
    days: Counter[str] = field(default_factory=Counter)
    steps: Counter[tuple[int, str]] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    declined: Counter[str] = field(default_factory=Counter)
    acting: int = 0
    let_down: int = 0
    other_let_down: int = 0
    groups: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    due: list[LetterDue] = field(default_factory=list)
    owed: int = 0
    overdue: int = 0


def groups_of(schema: Schema, own: str | None) -> tuple[str, ...]:
    """The features whose levels make groups in the counts.

    Parameters
    ----------
    schema
        The card; its sensitive features that have levels make groups.
    own
        The feature by which certificates are made; None: there is none.

    Returns
    -------
    tuple of str
        Names of features, ``own`` first.
    """
    sensitive = [
        feature.name for feature in schema if feature.sensitive and feature.kind != "continuous"
    ]
    return tuple(dict.fromkeys([*([own] if own else []), *sensitive]))


def summarise(
    records: Iterable[StoredInterview], groups: Iterable[str], refused: Iterable[str]
) -> Summary:
    """Count interviews.

    Parameters
    ----------
    records
        The interviews, in the order of their beginning.
    groups
        The features whose levels make groups.
    refused
        The outcomes that are a refusal.

    Returns
    -------
    Summary
        The counts.
    """
    summary, names, bad = Summary(), tuple(groups), {*refused}
    for record in records:
        _count(summary, record, names, bad)
    return summary


def _count(
    summary: Summary, record: StoredInterview, groups: tuple[str, ...], refused: set[str]
) -> None:
    """Count one interview."""
    shown, put = record.of("shown"), record.of("answer", "decline")
    summary.interviews += 1
    summary.finished += record.finished
    summary.days[record.began.date().isoformat()] += 1
    for event in put:
        if event.kind == "decline":
            summary.declined[event.content["name"]] += 1
        summary.asked.update([*event.content.get("facts", ())] or [event.content["name"]])
    acting = any(event.content.get("status") == "act" for event in shown)
    told = [event.content["status"] for event in shown if event.content.get("promised")]
    other = told[-1] if told else "stopped" if record.of("stop") else "open"
    end = "act" if acting else other
    summary.steps[len(put), end] += 1
    summary.acting += acting
    if record.of("let_down"):
        summary.let_down += acting
        summary.other_let_down += not acting
    facts = _facts(record) if shown else {}
    for name in groups:
        if isinstance(level := facts.get(name), str | int | float):
            levels = summary.groups.setdefault(name, {})
            label = str(level) if str(level) in levels or len(levels) < MOST_LEVELS else "others"
            last = shown[-1].content.get("outcome") in refused
            cell = levels.get(label, [0, 0, 0])
            levels[label] = [cell[0] + 1, cell[1] + last, cell[2] + acting]
    refusals = [event.time for event in shown if event.content.get("refusal_shown")]
    if refusals and not record.of("letter"):
        until = refusals[0] + CLOCK
        summary.owed += 1
        summary.overdue += until < utc_now()
        if len(summary.due) < MOST_DUE:
            days = ["", *(str(event.content.get("date", "")) for event in record.of("decided"))]
            summary.due.append(LetterDue(record.id, refusals[0], until, days[-1]))


def _facts(record: StoredInterview) -> dict[str, object]:
    """The facts that were told and not taken back."""
    facts: dict[str, object] = {}
    for event in record.of("start", "answer", "undo"):
        if event.kind != "undo":
            facts |= event.content["facts"]
        elif event.content.get("name"):
            facts.pop(event.content["name"], None)
    return facts


def hide_small(levels: Mapping[str, list[int]]) -> dict[str, list[int] | None]:
    """Hide the cells of a group that have fewer than ``LEAST`` people.

    If just one is hidden, the smallest other one is too: it could be worked out from the total.

    Parameters
    ----------
    levels
        People, refused ones and those who may act, by level.

    Returns
    -------
    dict
        The same; None for a level that is hidden.

    Examples
    --------
    >>> hide_small({"a": [50, 9, 1], "b": [30, 2, 0], "c": [3, 1, 0]})
    {'a': [50, 9, 1], 'b': None, 'c': None}
    """
    shown = {level: cell for level, cell in levels.items() if cell[0] >= LEAST_PEOPLE_IN_A_CELL}
    if len(levels) - len(shown) == 1 and shown:
        del shown[min(shown, key=lambda level: shown[level][0])]
    return {level: shown.get(level) for level in levels}
