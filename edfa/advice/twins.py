"""Whether people to certify on are strangers to the advisor: neither the training people again, nor
one person twice.

Two people may have the same facts by chance, the more often the fewer facts there are. How often
that happens is seen among people of whom it is known that they are others.
"""

from typing import Any

import numpy as np
from scipy import special

from edfa.advice.fitted import FittedAdvisor
from edfa.data.table import Table
from edfa.errors import DataError
from edfa.typing import BoolArray, Float32Array

__all__ = ["check_strangers"]

LEAST = 1e-3  # probability of as many twins by chance below which it is not believed to be chance


def check_strangers(people: Any, X: Float32Array, fitted: FittedAdvisor) -> tuple[str, ...]:  # noqa: N803
    """Refuse training people; warnings about people with the facts of a training person, or of one
    another.

    ``X`` are the encoded rows of ``people``, (people, features); they are compared by the features
    that are known of all of them. A DataError is raised for the training part itself, and for more
    exact twins of training people than chance explains: as often as the advisor's own calibration
    people have one.
    """
    shown, train = np.asarray(~np.isnan(X).any(axis=0)), fitted.train
    same_split = isinstance(people, Table) and people.part == "train"
    if same_split and (people.name, people.seed, len(people)) == (
        train.name,
        train.seed,
        len(train),
    ):
        raise DataError("these are the people the advisor was fitted on; certify on others")
    rows, learnt = _keys(X, shown), _keys(train.X, shown)
    messages, known = [], set(learnt)
    twins = sum(row in known for row in rows)
    if _by_chance(twins, len(rows), *_expected_twins(fitted, shown, learnt)) < LEAST:
        raise DataError(
            f"{twins} of {len(rows)} people are among those the advisor was fitted on; "
            "certify on others"
        )
    if twins:
        messages.append(
            f"{twins} of {len(rows)} people have exactly the facts of a training person"
        )
    size = min(len(rows), len(learnt))
    if _by_chance(_repeats(rows, size), size, _repeats(learnt, size), size) < LEAST:
        messages.append(
            f"{_repeats(rows, len(rows))} of {len(rows)} people have exactly the facts of "
            "another of them, more than "
            "chance explains; a person who is there twice counts twice"
        )
    return tuple(messages)


def _keys(rows: Float32Array, shown: BoolArray) -> list[bytes]:
    """The features that are ``shown`` of each row as bytes; equal rows have equal bytes."""
    return [
        row.tobytes() for row in np.ascontiguousarray(rows[:, shown]) + np.float32(0)
    ]  # no minus zero


def _expected_twins(
    fitted: FittedAdvisor, shown: BoolArray, learnt: list[bytes]
) -> tuple[int, int]:
    """How many of how many others have the facts of a training person.

    They are the calibration people; for an advisor that was saved without them, training people,
    each held against the other ones.
    """
    if fitted.calibration is not None:
        known, others = set(learnt), _keys(fitted.calibration, shown)
        return sum(row in known for row in others), len(others)
    counts = np.unique(np.array(learnt, dtype=object), return_counts=True)[1]
    return int(counts[counts > 1].sum()), len(learnt)


def _repeats(rows: list[bytes], size: int) -> int:
    """How many of ``size`` rows, drawn at random, repeat another one of them."""
    drawn = np.random.default_rng(0).permutation(len(rows))[:size].tolist()
    return size - len({rows[i] for i in drawn})


def _by_chance(count: int, n: int, seen: int, of: int) -> float:
    """The probability that at least ``count`` of n are twins if each is one as often as ``seen`` of
    ``of`` were.
    """
    rate = (seen + 1) / (of + 2)
    return float(special.betainc(count, n - count + 1, rate)) if count else 1.0
