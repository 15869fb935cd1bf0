"""What the operator sees of many interviews: counts alone, in one pass over the store, in bounded
memory.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from edfa.data.schema import Schema
from edfa_serve.store import StoredInterview, utc_now

__all__ = ["LEAST", "LetterDue", "Summary", "groups_of", "hide_small", "summarise"]

LEAST = 20  # people in a cell that is shown
CLOCK = timedelta(days=30)  # for a letter, since a refusal was shown
MOST_DUE = 50  # letters that are listed
MOST_LEVELS = 50  # of a group


@dataclass(frozen=True)
class LetterDue:
    """An interview in which a refusal was shown and no letter was written.

    ``until`` is the end of its 30 days; ``decided`` is the day of the decision, empty if none was
    declared.
    """

    interview: str
    shown: datetime
    until: datetime
    decided: str = ""


@dataclass
class Summary:
    """Counts of interviews.

    ``days`` by the day they began; ``steps`` by the number of questions that were put, and how they
    stand: ``"act"`` (they may act), ``"stopped"`` or ``"open"``. ``declined`` and ``asked`` by
    feature. ``acting`` people may act, ``let_down`` of them reported that the plan did not hold,
    ``other_let_down`` others did. ``groups`` by feature and level: people, refused ones, and those
    who may act. ``due`` are the first letters due, ``overdue`` how many are past their time,
    ``owed`` how many there are at all.
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
    """The features whose levels make groups: that of the certificates, and the sensitive ones that
    have levels.
    """
    sensitive = [
        feature.name for feature in schema if feature.sensitive and feature.kind != "continuous"
    ]
    return tuple(dict.fromkeys([*([own] if own else []), *sensitive]))


def summarise(
    records: Iterable[StoredInterview], groups: Iterable[str], refused: Iterable[str]
) -> Summary:
    """Count interviews; ``groups`` are features, ``refused`` the outcomes that are a refusal."""
    summary, names, bad = Summary(), tuple(groups), {*refused}
    for record in records:
        _count(summary, record, names, bad)
    return summary


def _count(
    summary: Summary, record: StoredInterview, groups: tuple[str, ...], refused: set[str]
) -> None:
    facts, shown, put = _facts(record), record.of("shown"), record.of("answer", "decline")
    summary.interviews += 1
    summary.finished += record.finished
    summary.days[record.began.date().isoformat()] += 1
    for event in put:
        if event.kind == "decline":
            summary.declined[event.content["name"]] += 1
        summary.asked.update([*event.content.get("facts", ())] or [event.content["name"]])
    acting = any(event.content.get("status") == "act" for event in shown)
    end = "act" if acting else "stopped" if record.of("stop") else "open"
    summary.steps[len(put), end] += 1
    summary.acting += acting
    if record.of("let_down"):
        summary.let_down += acting
        summary.other_let_down += not acting
    for name in groups:
        if isinstance(level := facts.get(name), str | int | float) and shown:
            levels = summary.groups.setdefault(name, {})
            label = str(level) if str(level) in levels or len(levels) < MOST_LEVELS else "others"
            cell = levels.setdefault(label, [0, 0, 0])
            last = shown[-1].content.get("outcome") in refused
            for part, true in enumerate((True, last, acting)):
                cell[part] += true
    refusals = [event.time for event in shown if event.content.get("refusal_shown")]
    if refusals and not record.of("letter"):
        until = refusals[0] + CLOCK
        summary.owed += 1
        summary.overdue += until < utc_now()
        # records come in the order of their beginning: the oldest are listed
        if len(summary.due) < MOST_DUE:
            days = [str(event.content.get("date", "")) for event in record.of("decided")]
            summary.due.append(LetterDue(record.id, refusals[0], until, days[-1] if days else ""))


def _facts(record: StoredInterview) -> dict[str, object]:
    """What was told, and not taken back."""
    facts: dict[str, object] = {}
    for event in record.of("start", "answer", "undo"):
        if event.kind != "undo":
            facts |= event.content["facts"]
        elif event.content.get("name"):
            facts.pop(event.content["name"], None)
    return facts


def hide_small(levels: Mapping[str, list[int]], least: int = LEAST) -> dict[str, list[int] | None]:
    """The cells of a group, None where there are fewer than ``least`` people.

    If just one is hidden, the smallest other one is too: it could be worked out from the total.

    >>> hide_small({"a": [50, 9, 1], "b": [30, 2, 0], "c": [3, 1, 0]})
    {'a': [50, 9, 1], 'b': None, 'c': None}
    """
    shown = {level: cell for level, cell in levels.items() if cell[0] >= least}
    if len(levels) - len(shown) == 1 and shown:
        del shown[min(shown, key=lambda level: shown[level][0])]
    return {level: shown.get(level) for level in levels}
