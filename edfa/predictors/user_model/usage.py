"""What a model uses, beside what says something about the outcome.

A feature is used if the model's probabilities move when its values are dealt out among other
people. That is about the model alone: it may use what says nothing about the outcome, and leave
unused what does.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from edfa.blanket import Blanket
from edfa.errors import DataError, UnknownNameError, UnreadableError
from edfa.reading import parse_object
from edfa.text import html
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["Usage", "UsageReport", "compare_usage", "permutation_usage"]

PERMUTATIONS = 3
STILL = 1e-9  # a probability that moves by no more than this does not move


@dataclass(frozen=True, eq=False)
class Usage:
    """What a model's answers owe to each feature, by permutation.

    Parameters
    ----------
    turned
        The share of decisions that turn when the feature's values are permuted among people,
        (features,).
    moved
        The largest change of a probability, (features,).
    people
        The number of people asked about.
    """

    turned: Float64Array
    moved: Float64Array
    people: int

    @property
    def used(self) -> BoolArray:
        """Which features the model uses, (features,): some probability moved."""
        return self.moved > STILL

    def to_json(self) -> str:
        """As JSON text; ``from_json`` reads it back, to the bit."""
        return json.dumps(
            {"turned": self.turned.tolist(), "moved": self.moved.tolist(), "people": self.people}
        )

    @classmethod
    def from_json(cls, text: str) -> "Usage":
        """What ``to_json`` wrote; UnreadableError for anything else."""
        content = parse_object(text, "this usage")
        try:
            turned, moved = (
                np.asarray(content[name], dtype=np.float64) for name in ("turned", "moved")
            )
            people = int(content["people"])
        except (KeyError, TypeError, ValueError):
            raise UnreadableError(
                "this usage needs 'turned', 'moved' and 'people', all of them numbers"
            ) from None
        within = ((turned >= 0) & (turned <= 1)).all() and ((moved >= 0) & (moved <= 1)).all()
        if turned.ndim != 1 or turned.shape != moved.shape or not within:
            raise UnreadableError(
                "this usage needs two numbers from 0 to 1 for each feature: 'turned' and 'moved'"
            )
        return cls(turned, moved, people)


def permutation_usage(
    ask: Callable[[Float32Array], Float64Array],
    decide: Callable[[Float64Array], IntArray],
    X: Float32Array,  # noqa: N803
    seed: int = 0,
    most: int = 2000,
) -> Usage:
    """Find out what a model uses: permute each feature three times among people and ask again.

    Everybody is asked about each time, in the same order, so that a model whose last bits depend on
    the other rows of a call does not seem to use what it does not.

    Parameters
    ----------
    ask
        Gives the probabilities, (people, classes), of complete encoded people, (people, features).
    decide
        Gives the decisions, (people,), of probabilities.
    X
        Complete encoded training people, (people, features).
    seed
        Of the permutations, and of who is asked about if there are more than ``most``.
    most
        The largest number of people asked about.

    Examples
    --------
    >>> def ask(X):
    ...     chance = (X[:, 0] > 0).astype(float)
    ...     return np.column_stack([1 - chance, chance])
    >>> X = np.random.default_rng(0).normal(size=(400, 2)).astype(np.float32)
    >>> permutation_usage(ask, lambda p: p.argmax(axis=1), X).used
    array([ True, False])
    """
    X = np.asarray(X, dtype=np.float32)  # noqa: N806
    if X.ndim != 2 or not len(X):
        raise DataError(
            f"people are needed to see what a model uses, (people, features), not {X.shape}"
        )
    rng = np.random.default_rng(seed)
    people = X[np.sort(rng.permutation(len(X))[:most])]
    answers = ask(people)
    decisions = decide(answers)
    turned, moved = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for feature in range(X.shape[1]):
        for _ in range(PERMUTATIONS):
            changed = people.copy()
            changed[:, feature] = rng.permutation(people[:, feature])
            if np.array_equal(changed, people):
                continue
            again = ask(changed)
            turned[feature] += float((decide(again) != decisions).mean()) / PERMUTATIONS
            moved[feature] = max(moved[feature], float(np.abs(again - answers).max()))
    return Usage(np.minimum(turned, 1.0), moved, len(people))


@dataclass(frozen=True)
class UsageReport:
    """What a model uses beside the outcome's Markov blanket, each as names in the order of the
    card.

    Parameters
    ----------
    target
        The outcome.
    shared
        Features that the model uses and the blanket has.
    only_used
        Features that the model uses although no test saw them say more about the outcome than the
        blanket does.
    only_blanket
        Features of the blanket that the model does not use.
    neither
        The others.
    turned, moved
        As in ``Usage``, by feature.
    """

    target: str
    shared: tuple[str, ...]
    only_used: tuple[str, ...]
    only_blanket: tuple[str, ...]
    neither: tuple[str, ...]
    turned: dict[str, float]
    moved: dict[str, float]

    @property
    def sentences(self) -> tuple[str, str, str]:
        """One sentence each: used and in the blanket, used alone, in the blanket alone."""
        says, adds = (" says", "s say"), (" was not seen to say", "s were not seen to say")
        return (
            f"The model uses {_list(self.shared, says, f'something about {self.target}')}.",
            f"It uses {_list(self.only_used, adds, f'more about {self.target}')}.",
            f"It leaves out {_list(self.only_blanket, says, f'something about {self.target}')}.",
        )

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def frame(self) -> pd.DataFrame:
        """One row a feature in the order of the card: feature, used, in_blanket, turned, moved."""
        names = list(self.turned)
        used, blanket = {*self.shared, *self.only_used}, {*self.shared, *self.only_blanket}
        return pd.DataFrame(
            {
                "feature": names,
                "used": [name in used for name in names],
                "in_blanket": [name in blanket for name in names],
                "turned": list(self.turned.values()),
                "moved": [self.moved[name] for name in names],
            }
        )

    def _repr_html_(self) -> str:
        words = ("no", "yes")
        rows = [
            [
                row.feature,
                words[bool(row.used)],
                words[bool(row.in_blanket)],
                f"{row.turned:.1%}",
                f"{row.moved:.3f}",
            ]
            for row in self.frame()
            .sort_values("turned", ascending=False, kind="stable")
            .itertuples()
        ]
        head = ["feature", "used", "in the blanket", ">decisions turned", ">largest change"]
        return html.fragment(*map(html.paragraph, self.sentences), html.table(head, rows))


def _list(names: Sequence[str], verb: tuple[str, str], what: str) -> str:
    """Features that say a thing, counted and named: "2 features that say something about risk: age,
    job".
    """
    one, many = (f"feature{text.replace(' ', ' that ', 1)} {what}" for text in verb)
    if not names:
        return f"no {one}"
    return f"{len(names)} {one if len(names) == 1 else many}: {', '.join(names)}"


def compare_usage(usage: Usage, blanket: Blanket, names: Sequence[str]) -> UsageReport:
    """Hold what a model uses against the outcome's Markov blanket.

    "More" is meant beside the blanket: once its features are known, no test saw another one say
    anything. ``names``: the features in the order of the card, as many as ``usage`` has.

    Examples
    --------
    >>> usage = Usage(np.array([0.2, 0.1, 0.0]), np.array([0.5, 0.4, 0.0]), 100)
    >>> print(compare_usage(usage, Blanket("repays", {"savings": (), "age": ()}), ("savings",
    ...     "height", "age")))
    The model uses 1 feature that says something about repays: savings.
    It uses 1 feature that was not seen to say more about repays: height.
    It leaves out 1 feature that says something about repays: age.
    """
    if len(names) != len(usage.turned):
        raise DataError(f"there are {len(names)} names for a usage of {len(usage.turned)} features")
    if strange := [name for name in blanket.features if name not in names]:
        raise UnknownNameError("feature", strange[0], names)
    used = {name for name, is_used in zip(names, usage.used, strict=True) if is_used}
    inside = set(blanket.features)
    return UsageReport(
        target=blanket.target,
        shared=tuple(name for name in names if name in used and name in inside),
        only_used=tuple(name for name in names if name in used and name not in inside),
        only_blanket=tuple(name for name in names if name not in used and name in inside),
        neither=tuple(name for name in names if name not in used and name not in inside),
        turned=dict(zip(names, usage.turned.tolist(), strict=True)),
        moved=dict(zip(names, usage.moved.tolist(), strict=True)),
    )
