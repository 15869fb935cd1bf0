"""Warnings about the data at fit time: leaks of the outcome, lopsided decisions, nothing that can
be changed, levels that occur once. ``find_warnings`` makes them.
"""

from collections.abc import Iterator

import numpy as np
from sklearn.metrics import roc_auc_score

from edfa.advice.evaluation import AdvisorEvaluation
from edfa.blanket.units import Blanket
from edfa.data.guess_names import words_of
from edfa.data.schema import Feature
from edfa.data.table import Table
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

DECIDES = 0.99  # AUROC from which on a single feature is suspected to know the outcome
NEARLY_ALL = 0.98  # accuracy from which on a blanket of one feature is
FEW_PEOPLE, FEW_SHARE = 10, 0.01
MANY_LEVELS = 10
N_BINS = 32
# Words of columns that are filled in once the outcome is known.
AFTERWARDS = frozenset(
    "recovered recovery recoveries chargeoff charged writeoff outcome result decision verdict "
    "collection collections settlement foreclosure after afterwards final".split()
)


def find_warnings(table: Table, blanket: Blanket, evaluation: AdvisorEvaluation) -> tuple[str, ...]:
    """What looks wrong, a sentence each; empty if nothing does.

    Parameters
    ----------
    table
        The whole table that the advisor was fitted on; its training part alone is looked at.
    blanket, evaluation
        What the advisor found, and how it did on test people.
    """
    train = table.reference
    return (
        *_leaks(train),
        *_names(train),
        *_lone_feature(blanket, evaluation),
        *_nothing_to_change(train, blanket),
        *_lopsided(train, evaluation),
        *_single_levels(train),
    )


def _leaks(train: Table) -> Iterator[str]:
    """A warning for each feature that alone nearly decides the outcome: whose AUROC alone is at
    least ``DECIDES``.
    """
    good = train.y == train.schema.classes.index(train.schema.favourable)
    if min(good.sum(), (~good).sum()) < FEW_PEOPLE:
        return
    for i, feature in enumerate(train.schema):
        auroc = _auroc_alone(_cells(train.X[:, i], feature), good)
        if auroc >= DECIDES:
            yield (
                f"{feature.name} alone nearly decides {train.schema.target} (AUROC {auroc:.3f}); "
                "is it known before the outcome is?"
            )


def _cells(codes: Float32Array, feature: Feature) -> IntArray:
    """The level, or for measurements the bin, of each person, (people,), numbered from 0.

    Parameters
    ----------
    codes
        Encoded values of the feature, (people,).
    feature
        The feature on the card.
    """
    if feature.kind == "continuous":
        quantiles = np.quantile(codes, np.linspace(0, 1, N_BINS + 1)[1:-1], method="lower")
        edges, times = np.unique(quantiles, return_counts=True)
        own = np.isin(codes, edges[times > 1])  # a number that many have is a cell of its own
        codes = (2 * np.searchsorted(edges, codes, side="left") + own).astype(np.float32)
    return np.unique(codes, return_inverse=True)[1]


def _auroc_alone(cells: IntArray, good: BoolArray) -> float:
    """The AUROC of a feature alone: how well the share of good outcomes in a person's cell tells
    their outcome.

    The shares come from the other half of the people: an identifier, which has a level per person,
    knows nothing of anybody else.

    Parameters
    ----------
    cells
        The number of each person's cell, (people,).
    good
        Who has the favourable outcome, (people,).
    """
    half = np.random.default_rng(0).random(len(good)) < 0.5
    score: Float64Array = np.empty(len(good))
    for part in (half, ~half):
        size = cells.max() + 1
        counts = np.bincount(cells[~part], minlength=size)
        sums = np.bincount(cells[~part], weights=good[~part], minlength=size)
        shares = (sums + good.mean()) / (counts + 1)
        score[part] = shares[cells[part]]
    return float(roc_auc_score(good, score))


def _names(train: Table) -> Iterator[str]:
    """A warning for each feature whose name has the outcome's in it, or a word for what is filled
    in after it (``AFTERWARDS``).
    """
    target = frozenset(words_of(train.schema.target))
    telling = target if any(len(word) > 2 for word in target) else frozenset()
    for name in train.schema.names:
        words = frozenset(words_of(name))
        if telling and telling <= words:
            yield (
                f"{name} has {train.schema.target!r} in its name; is it known before the "
                "outcome is?"
            )
        elif after := sorted(words & AFTERWARDS):
            yield (
                f"{name} ({after[0]!r}) sounds like what is known only after the outcome; "
                "is it known before?"
            )


def _lone_feature(blanket: Blanket, evaluation: AdvisorEvaluation) -> Iterator[str]:
    """A warning if a single feature is the blanket, and is nearly always right."""
    right = evaluation.accuracy_end
    if len(blanket) == 1 and right >= NEARLY_ALL:
        yield (
            f"{blanket.features[0]} is all that matters, and right about {right:.1%}; is it the "
            "outcome under another name?"
        )


def _nothing_to_change(train: Table, blanket: Blanket) -> Iterator[str]:
    """A warning if the card lets nobody change anything in the blanket."""
    known = [train.schema[name] for name in blanket.features if name in train.schema.names]
    if known and not any(feature.actionable for feature in known):
        yield (
            f"nothing that matters for {train.schema.target} can be changed by the card, so "
            "nobody can have a plan"
        )


def _lopsided(train: Table, evaluation: AdvisorEvaluation) -> Iterator[str]:
    """A warning if hardly anybody is refused, or granted, at the end."""
    people, favourable = evaluation.people, train.schema.favourable
    refused = round(evaluation.refused * people)
    least = max(FEW_PEOPLE, FEW_SHARE * people)
    share = float((train.y == train.schema.classes.index(favourable)).mean())
    fact = f"{share:.1%} of training people have {favourable!r}"
    for count, what in ((refused, "refused"), (people - refused, "granted")):
        if count < least:
            who = "nobody" if not count else f"only {count:,}"
            yield (
                f"{who} of {people:,} people would be {what} ({fact}); --threshold "
                "balanced decides by that share"
            )
            return


def _single_levels(train: Table) -> Iterator[str]:
    """A warning for each categorical feature most of whose levels only one training person has."""
    for name in (feature.name for feature in train.schema if feature.kind == "categorical"):
        counts = train.frame[name].value_counts()
        single = int((counts == 1).sum())
        if len(counts) >= MANY_LEVELS and single > len(counts) / 2:
            yield (
                f"{name}: {single:,} of {len(counts):,} levels occur once; merge them, or leave "
                "it out"
            )
