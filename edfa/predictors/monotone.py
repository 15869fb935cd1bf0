"""Directions in models: which way of a column is good, as signs, and whether a fitted model keeps
to them.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from edfa.errors import SettingError
from edfa.predictors.base import Predictor
from edfa.reading import parse
from edfa.typing import NAN, BoolArray, Float32Array, IntArray

if TYPE_CHECKING:
    from edfa.data.schema import Schema

CHECKED_PEOPLE = 500  # people on whom a model is checked
VALUES = 20  # values of each column that they are given
SUBSETS = 7  # sets of known features, beside everything, under which they are checked
ROUNDING = 1e-6  # a smaller step in probability is no step


def check_signs(monotone: tuple[int, ...] | None, columns: int) -> tuple[int, ...]:
    """A model's ``monotone`` setting as one sign a column.

    Parameters
    ----------
    monotone
        The setting; None: all columns are free.
    columns
        The number of columns.

    Raises
    ------
    SettingError
        Unless it is a tuple with one of -1, 0, 1 for each column.

    Examples
    --------
    >>> check_signs(None, 3)
    (0, 0, 0)
    """
    if monotone is None:
        return (0,) * columns
    if not isinstance(monotone, tuple):
        raise SettingError(
            f"monotone: a tuple with one of -1, 0, 1 for each column, not {monotone!r}"
        )
    if wrong := [sign for sign in monotone if type(sign) is not int or sign not in (-1, 0, 1)]:
        raise SettingError(f"monotone: one of -1, 0, 1 for each column, not {wrong[0]!r}")
    if len(monotone) != columns:
        raise SettingError(f"monotone: one sign a column, {columns}, not {len(monotone)}")
    return monotone


def signs(schema: "Schema") -> tuple[int, ...]:
    """The card's directions as a model's ``monotone`` setting, with zeros where it has none.

    Between two classes they are for the probability of the second one, whichever is favourable;
    among more, for that of the favourable class. ``schema`` is a table's: it names the classes.

    >>> import edfa
    >>> amount = edfa.Feature("amount", "continuous", monotone="down")
    >>> signs(edfa.Schema((amount,), "class", "good", classes=("bad", "good")))
    (-1,)
    >>> signs(edfa.Schema((amount,), "class", "granted", classes=("granted", "refused")))
    (1,)
    """
    if not schema.classes:
        raise SettingError("the classes are not known yet; take the schema of a table")
    turned = len(schema.classes) == 2 and schema.classes[0] == schema.favourable
    up = -1 if turned else 1
    return tuple({"up": up, "down": -up, None: 0}[feature.monotone] for feature in schema)


@dataclass(frozen=True)
class FeatureCheck:
    """How a model keeps to the direction of one feature.

    Parameters
    ----------
    feature
        The name of the feature.
    wrong
        The share of steps between neighbouring values that go the wrong way.
    largest
        The largest such step, in probability.
    turned
        The share of people whose decision a better value ever turns against them.
    """

    feature: str
    wrong: float
    largest: float
    turned: float


@dataclass(frozen=True)
class DirectionCheck:
    """How a model keeps to the card's directions, measured on some training people, and told in a
    sentence.

    Parameters
    ----------
    people
        The number of people on whom it was measured.
    features
        What was found for each feature with a direction that the model is shown.
    """

    people: int
    features: tuple[FeatureCheck, ...]

    @property
    def worst(self) -> FeatureCheck | None:
        """The feature with the largest step the wrong way; None where every direction holds."""
        wrong = [feature for feature in self.features if feature.wrong]
        return max(wrong, key=lambda feature: (feature.largest, feature.wrong), default=None)

    @property
    def sentence(self) -> str:
        """What was found, in one line."""
        checked = f"on {self.people} people, {len(self.features)} features"
        if self.worst is None:
            return f"Directions of the card: they hold ({checked})."
        wrong = float(np.mean([feature.wrong for feature in self.features]))
        turned = max(self.features, key=lambda feature: feature.turned)
        more = f"; at most {turned.turned:.1%} are ever decided against for it ({turned.feature})"
        return (
            f"Directions of the card ({checked}): {wrong:.1%} of steps to a better value "
            "lower the chance, by at most "
            f"{self.worst.largest:.3f} "
            f"({self.worst.feature}){more if turned.turned else '; no decision turns'}."
        )

    def to_json(self) -> str:
        """As JSON; ``from_json`` reads it back, equal."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "DirectionCheck":
        """Read what ``to_json`` wrote."""
        return parse(cls, json.loads(text), "directions")


def check_directions(
    predictor: Predictor,
    rows: Float32Array,
    directions: tuple[int, ...],
    names: Sequence[str],
) -> DirectionCheck:
    """Give training people better and better values of one feature at a time, and see where the
    model goes down.

    Half of the people are known completely, of the others a random part is known.

    Parameters
    ----------
    predictor
        The fitted model. Columns that it is not shown, or that never varied, are not checked.
    rows
        Training rows, (people, features).
    directions
        The signs, as in a model's ``monotone`` setting.
    names
        The names of the features.

    Returns
    -------
    What was found for each feature with a direction. Which people are looked at, and what is known
    of them, is drawn by a fixed seed.
    """
    wanted = check_signs(directions, rows.shape[1])
    random = np.random.default_rng(0)
    people = rows[random.permutation(len(rows))[:CHECKED_PEOPLE]]
    subsets = random.random((2 * SUBSETS, rows.shape[1])) < random.random((2 * SUBSETS, 1))
    subsets[:SUBSETS] = True
    known = subsets[np.arange(len(people)) % len(subsets)]
    return DirectionCheck(
        len(people),
        tuple(
            FeatureCheck(
                names[j],
                *_check_column(predictor, people, known, j, _better(rows[:, j], sign)),
            )
            for j, sign in enumerate(wanted)
            if sign and predictor.varies_[j]
        ),
    )


def _better(values: Float32Array, sign: int) -> Float32Array:
    """Some training values of a column, each better than the one before."""
    distinct = np.unique(values[~np.isnan(values)])
    some = distinct[np.unique(np.linspace(0, len(distinct) - 1, VALUES).round().astype(np.intp))]
    return some[::sign]


def _check_column(
    predictor: Predictor, people: Float32Array, known: BoolArray, column: int, values: Float32Array
) -> tuple[float, float, float]:
    """Sweep one column and see where the model goes down.

    Parameters
    ----------
    predictor
        The fitted model.
    people
        Complete encoded people, (people, features).
    known
        What the model is shown of them, (people, features).
    column
        The position of the column.
    values
        Values of it, each better than the one before, (values,).

    Returns
    -------
    The share of steps that go the wrong way, the largest of them in probability, and the share of
    people whose decision ever turns against them.
    """
    swept = np.where(known, people, NAN)[:, None].repeat(len(values), axis=1)
    swept[:, :, column] = values
    probabilities = predictor.predict_proba(swept.reshape(-1, people.shape[1]))
    about = predictor._about(probabilities.shape[1])
    steps = np.diff(probabilities[:, about].reshape(len(people), -1), axis=1)
    got: IntArray = (
        (predictor.decide(probabilities) == about).reshape(len(people), -1).astype(np.intp)
    )
    turned = (np.diff(got, axis=1) < 0).any(axis=1)
    return (
        float((steps < -ROUNDING).mean()),
        float(np.maximum(-steps, 0).max(initial=0)),
        float(turned.mean()),
    )
