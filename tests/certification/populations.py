"""Populations of a few kinds of people, whose exact risk is known for every target and every policy
for the undefined.

Each kind is a run: what a rule sees and what becomes of it at each step. A draw is the kind of each
of n people, so it goes through the certifier as records do, and equal draws need to go through it
only once.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from edfa.certification import Records

OVER = 0.003  # how far the bad rules are above alpha
FAR = 50.0  # a signal that no rule of interest reaches


@dataclass(frozen=True, eq=False)
class Population:
    """``share`` of each kind; the other arrays have a row a kind, a column a seed, and one a
    step.
    """

    share: np.ndarray
    signal: np.ndarray
    loss: np.ndarray
    legal: np.ndarray
    refused: np.ndarray

    def records(self, kinds, group=None):
        """The runs of people of these kinds."""
        person, seed, step = (
            axis.ravel() for axis in np.indices((len(kinds), *self.loss.shape[1:]))
        )
        columns = (getattr(self, name)[kinds].ravel() for name in ("signal", "loss", "legal"))
        labels = None if group is None else np.asarray(group)[person]
        return Records(
            person,
            seed,
            step,
            1.0 * step,
            *columns,
            group=labels,
            refused=self.refused[kinds].ravel(),
        )

    def refill(self, records, kinds):
        """The same people and steps with runs of other kinds: checked once, filled many times."""
        for name in ("signal", "loss", "legal", "refused"):
            object.__setattr__(records, name, getattr(self, name)[kinds].ravel())
        return records

    @cache  # noqa: B019  (a few populations, as long as a test)
    def risks(self, target):
        """All thresholds that differ, -inf first, and the exact risk at each."""
        levels = np.append(-np.inf, np.unique(self.signal))
        return levels, np.array([self._risk(tau, target) for tau in levels])

    def _risk(self, tau, target):
        lost = eligible = 0.0
        for k, run in np.ndindex(self.loss.shape[:2]):
            weight = self.share[k] / self.loss.shape[1]
            legal = np.flatnonzero(self.legal[k, run])
            if not len(legal):
                continue
            low = legal[self.signal[k, run, legal] <= tau]
            stop = low[0] if len(low) else legal[-1]
            early = bool(len(low)) and stop < self.loss.shape[2] - 1
            if {"all": True, "early": early, "refused": self.refused[k, run, stop]}[target]:
                lost, eligible = lost + weight * self.loss[k, run, stop], eligible + weight
        return lost / eligible if eligible else 0.0


def population(name, alpha, *, target="all", seeds=1):
    """Rules with thresholds 1, 2, ... beside "never", some of which are just bad.

    Monotone: 0, bad, 1. Non-monotone: 0, bad, 0, bad, and different people are let down by the two
    bad ones. With a target, a quarter of the people are none of those it speaks of; they are never
    lost, so that a promise to all is easier to keep than the one in question.
    """
    half = name == "half undefined"
    bad = alpha + OVER
    lists = [(bad, (0, 1, 1)), (1 - bad, (0, 0, 1))]
    if name == "non-monotone":
        lists = [(bad, (0, 1, 0, 0)), (bad, (0, 0, 0, 1)), (1 - 2 * bad, (0, 0, 0, 0))]
    kinds = [(share, losses, True, True) for share, losses in lists]
    rules = len(lists[0][1])
    if target != "all":
        kinds = [(0.75 * share, *kind) for share, *kind in kinds] + [
            (0.25, (0,) * rules, True, False)
        ]
    if half:
        kinds = [(0.5 * share, *kind) for share, *kind in kinds] + [
            (0.5, (0,) * rules, False, True)
        ]
    share, losses, legal, member = (np.array(column) for column in zip(*kinds, strict=True))
    signal = np.tile(np.append(np.arange(rules - 1, 0, -1), rules + 1.0), (len(kinds), 1))
    if target == "early":
        signal[~member, :-1] = FAR
    steps = np.ones(rules, dtype=bool)
    parts = [signal, losses[:, ::-1].astype(float), legal[:, None] & steps, member[:, None] & steps]
    if seeds == 1:
        return Population(share, *(part[:, None] for part in parts))
    return _pairs(Population(share, *(part[:, None] for part in parts)))


def _pairs(one):
    """Two seeds a person: alike for half of the people, independent for the others."""
    first, second = np.triu_indices(len(one.share))
    apart = one.share[first] * one.share[second] * np.where(first == second, 1, 2)
    share = 0.5 * apart + np.where(first == second, 0.5 * one.share[first], 0)
    names = ("signal", "loss", "legal", "refused")
    return Population(
        share,
        *(np.concatenate([getattr(one, n)[first], getattr(one, n)[second]], 1) for n in names),
    )


def draws(people, n, times, seed, *, ordered):
    """Different draws of n people, as kinds, and how often each came; draws that only differ in who
    is who are one, unless the order counts.
    """
    random = np.random.default_rng(seed)
    if ordered:
        return np.unique(
            random.choice(len(people.share), (times, n), p=people.share), axis=0, return_counts=True
        )
    counts, times = np.unique(
        random.multinomial(n, people.share, times), axis=0, return_counts=True
    )
    return np.array([np.repeat(np.arange(len(people.share)), row) for row in counts]), times


def is_false(people, alpha, interval, *, target="all"):
    """Whether any of the thresholds from the first to the last of an interval has a risk above
    alpha.
    """
    first, last = interval
    levels, risks = people.risks(target)
    begin, end = np.searchsorted(levels, [first, last], side="right") - 1
    return bool(risks[max(begin, 0) : end + 1].max() > alpha)
