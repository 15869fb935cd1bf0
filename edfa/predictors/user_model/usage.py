"""What a model uses, beside what says something about the outcome.

A feature is used if the model's probabilities move when its values are dealt out among other
people. That is about the model alone: it may use what says nothing about the outcome, and leave
unused what does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from edfa.blanket import Blanket
from edfa.text import html
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

PERMUTATIONS = 3
LEAST_DIFFERENCE = 1e-9  # a probability that moves by no more than this does not move


class Usage(NamedTuple):
    """What a model's answers owe to each feature, by permutation.

    Attributes
    ----------
    turned
        The share of decisions that turn when the feature's values are permuted among people,
        (features,).
    moved
        The largest change of a probability, (features,).
    """

    turned: Float64Array
    moved: Float64Array

    @property
    def used(self) -> BoolArray:
        """Which features the model uses, (features,): some probability moved."""
        return self.moved > LEAST_DIFFERENCE


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
    return Usage(np.minimum(turned, 1.0), moved)


@dataclass(frozen=True, eq=False)
class UsageReport:
    """What a model uses beside the outcome's Markov blanket, each as names in the order of the
    card.

    "More" is meant beside the blanket: once its features are known, no test saw another one say
    anything.

    Parameters
    ----------
    usage
        What the model uses.
    blanket
        The outcome's Markov blanket.
    names
        The features in the order of the card, as many as ``usage`` has.

    Examples
    --------
    >>> usage = Usage(np.array([0.2, 0.1, 0.0]), np.array([0.5, 0.4, 0.0]))
    >>> names = ("savings", "height", "age")
    >>> print(UsageReport(usage, Blanket("repays", {"savings": (), "age": ()}), names))
    The model uses 1 feature that says something about repays: savings.
    It uses 1 feature that was not seen to say more about repays: height.
    It leaves out 1 feature that says something about repays: age.
    """

    usage: Usage
    blanket: Blanket
    names: tuple[str, ...]

    @property
    def shared(self) -> tuple[str, ...]:
        """Features that the model uses and the blanket has."""
        return self._names(used=True, inside=True)

    @property
    def only_used(self) -> tuple[str, ...]:
        """Features that the model uses although no test saw them say more about the outcome than
        the blanket does.
        """
        return self._names(used=True, inside=False)

    @property
    def only_blanket(self) -> tuple[str, ...]:
        """Features of the blanket that the model does not use."""
        return self._names(used=False, inside=True)

    def _names(self, used: bool, inside: bool) -> tuple[str, ...]:
        """Features that are ``used`` or not, and ``inside`` the blanket or not."""
        frame = self.frame()
        rows = (frame["used"] == used) & (frame["in_blanket"] == inside)
        return tuple(frame["feature"][rows])

    @property
    def sentences(self) -> tuple[str, str, str]:
        """One sentence each: used and in the blanket, used alone, in the blanket alone."""
        says, adds = (" says", "s say"), (" was not seen to say", "s were not seen to say")
        target = self.blanket.target
        return (
            f"The model uses {_list(self.shared, says, f'something about {target}')}.",
            f"It uses {_list(self.only_used, adds, f'more about {target}')}.",
            f"It leaves out {_list(self.only_blanket, says, f'something about {target}')}.",
        )

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def frame(self) -> pd.DataFrame:
        """One row a feature in the order of the card: feature, used, in_blanket, turned, moved."""
        return pd.DataFrame(
            {
                "feature": self.names,
                "used": self.usage.used,
                "in_blanket": np.isin(self.names, self.blanket.features),
                "turned": self.usage.turned,
                "moved": self.usage.moved,
            }
        )

    def _repr_html_(self) -> str:
        words = ("no", "yes")
        shown = self.frame().sort_values("turned", ascending=False, kind="stable")
        rows = [
            [name, words[used], words[inside], f"{turned:.1%}", f"{moved:.3f}"]
            for name, used, inside, turned, moved in shown.itertuples(index=False)
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
