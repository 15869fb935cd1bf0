"""The three endings of an interview, and what breaks the promise of each.

- "granted": a person is told that they will get the favourable decision. It is *overturned* if it
  is not given to them once the rest is known.
- "act": a person is told to follow a plan. It is followed *in vain* if they are still refused, or
  would be granted without it.
- "nothing": a person is told that nothing helps. Something was *missed* if they are granted, or
  have a plan, once the rest is known.

At every step a person is in a state in which just one of these is possible: granted as far as is
known, refused with a plan, or refused without one. ``replay_endings`` makes ``Records`` for each
ending, ``stop_endings`` applies the rules of all of them together.

Whom an ending reaches depends on the rules of the others, which may stop people before. The promise
of each must hold whatever the others turn out to be. ``count_for_all`` counts a person told wrongly
whether or not another ending may come first, and a person told rightly only if none can. The share
of wrong ones among those counted is then at least the share among those who are told so, for all
thresholds of the others up to the given ones; a bound on it is a bound for each of these rules.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, NamedTuple, get_args

import numpy as np

from edfa.certification.records import Loss, Records, Runs
from edfa.certification.replay import Against, decide_at_end, decide_today, in_vain
from edfa.recourse.plans import Plans
from edfa.typing import BoolArray, Float64Array, IntArray, ObjectArray

EndingName = Literal["granted", "act", "nothing"]
ENDINGS: tuple[EndingName, ...] = get_args(EndingName)
LOSS_OF: Mapping[EndingName, Loss] = {
    "granted": "overturned",
    "act": "in_vain",
    "nothing": "missed",
}


def replay_endings(
    plans: Plans,
    signals: Mapping[EndingName, Float64Array],
    *,
    favourable: int,
    advisor: str,
    against: Against | None = None,
) -> dict[EndingName, Records]:
    """Records of every ending that has a signal: what would become of each person if they were told
    so at each step.

    Parameters
    ----------
    plans
        The plans of every step, as ``find_recourse`` finds them, of people who are asked to the
        end.
    signals
        What the stop rule of each ending watches, (rows,); NaN at a step at which it is not
        possible.
    favourable
        The code of the favourable class.
    advisor
        A name in place of the fingerprint of everything that made the plans.
    against
        Who decides when the rest is known; by default today's model, from everything that is known
        at the last step of the same run. Today's model has a say under any reference: what it alone
        overturns is broken too.

    Returns
    -------
    dict of str to Records
        The rows of all are those of ``plans.people``; those of an ending are legal where it is
        possible. Of "act", ``wasted`` says whether the person would be granted without the plan.
    """
    held, people = against or Against(), plans.people
    decided = decide_at_end(plans, held)
    today = decide_today(plans, decided, held)
    last = _last_rows(plans)
    granted = (decided.at_end == favourable) | (today.at_end == favourable)
    losses = {
        "granted": (decided.at_end != favourable) | (today.at_end != favourable),
        "act": in_vain(decided, today, favourable),
        "nothing": granted | plans.legal[last],
    }
    return {
        name: Records(
            person=np.asarray(people.person),
            seed=np.asarray(people.seed),
            step=np.asarray(people.step),
            spent=np.asarray(people.spent),
            signal=signal,
            loss=np.asarray(losses[name], dtype=np.float64),
            legal=~np.isnan(signal),
            refused=decided.at_step != favourable,
            wasted=today.at_end == favourable if name == "act" else None,
            advisor=advisor,
            signal_name=name,
            reference=held.reference,
            loss_name=LOSS_OF[name],
        )
        for name, signal in signals.items()
    }


def _last_rows(plans: Plans) -> IntArray:
    """The row at which the run of each row ends, (rows,); a person's rows stand together."""
    people = plans.people
    person, seed = people.person, people.seed
    begins = np.append(True, (person[1:] != person[:-1]) | (seed[1:] != seed[:-1]))
    run = np.cumsum(begins) - 1
    return np.asarray(np.append(np.flatnonzero(begins)[1:], len(people))[run] - 1)


def count_for_all(
    records: Mapping[EndingName, Records],
    name: EndingName,
    loosest: Mapping[EndingName, float],
) -> Records:
    """The records of one ending, in which its risk holds whatever thresholds the others have.

    Parameters
    ----------
    records
        The records of every ending.
    name
        The ending.
    loosest
        The largest threshold that each other ending may have; one that is not named never stops
        anybody.

    Returns
    -------
    Records
        With the column ``counts``: false at a step that is not lost and where another ending may
        have stopped the person before.
    """
    mine = records[name]
    may_stop = np.zeros(len(mine), dtype=bool)
    for other, part in records.items():
        if other != name:
            may_stop |= part.legal & (part.signal <= loosest.get(other, -np.inf))
    return replace(mine, counts=(mine.loss == 1) | ~_before(mine, may_stop))


def _before(records: Records, stops: BoolArray) -> BoolArray:
    """Whether a run may have stopped at an earlier row, (rows,), from where it may, (rows,)."""
    runs, rows = Runs.from_records(records), np.arange(len(records))[records.order]
    count = np.cumsum(stops[rows]) - stops[rows]  # before each row, of all runs
    before = np.empty(len(records), dtype=bool)
    before[rows] = count > np.repeat(count[runs.start], runs.length)
    return before


class Ends(NamedTuple):
    """How each run ends under the rules of all endings; (runs,) each.

    Attributes
    ----------
    row
        The row of the records at which it ends: the first at which the signal of an ending is at
        most its threshold, else the last.
    ending
        The ending that the person is told; None: none before everything was asked.
    """

    row: IntArray
    ending: ObjectArray


def stop_endings(
    records: Mapping[EndingName, Records], tau: Mapping[EndingName, Float64Array | float]
) -> Ends:
    """Apply the rules of all endings together.

    Parameters
    ----------
    records
        The records of every ending, with the same rows.
    tau
        The threshold of each ending, of everybody or (runs,); NaN or no entry: nobody is told so.
    """
    first = next(iter(records.values()))
    runs, rows = Runs.from_records(first), np.arange(len(first))[first.order]
    row, ending = rows[runs.end], np.full(len(runs.start), None, dtype=object)
    earliest = runs.end + 1
    for name, part in records.items():
        level = np.broadcast_to(tau.get(name, np.nan), len(runs.start))
        low = part.legal[rows] & (part.signal[rows] <= np.repeat(level, runs.length))
        place = np.where(low, np.arange(len(rows)), len(rows))
        at = np.minimum.reduceat(place, runs.start)
        sooner = at < earliest
        row[sooner], ending[sooner] = rows[at[sooner]], name
        earliest = np.minimum(earliest, at)
    return Ends(row, ending)
