"""CUBE, a synthetic benchmark of feature acquisition: eight classes, twenty features, three
informative ones a class.

In class y the features y, y + 1 and y + 2 are the bits of y, the lowest first, plus noise; all
others are noise around a half. The posterior is known for any subset of features, so any order of
asking can be compared with the best greedy one.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from edfa.data.feature import Feature
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.errors import SettingError
from edfa.typing import Float64Array

__all__ = ["Cube"]

CLASSES, FEATURES, BITS = 8, 20, 3
OTHER = 0.3  # the noise of an uninformative feature


@dataclass(frozen=True)
class Cube:
    """The CUBE distribution; ``sigma`` is the standard deviation of the noise on informative
    features.

    Examples
    --------
    >>> cube = Cube(0.1)
    >>> cube.posterior(np.full((1, 20), np.nan))
    array([[0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125]])
    """

    sigma: float = 0.1

    def __post_init__(self) -> None:
        if not self.sigma > 0:
            raise SettingError(f"sigma is a standard deviation above 0, not {self.sigma}")

    def moments(self) -> tuple[Float64Array, Float64Array]:
        """Mean and standard deviation of every feature in every class, both (classes, features)."""
        mean, spread = np.full((CLASSES, FEATURES), 0.5), np.full((CLASSES, FEATURES), OTHER)
        for y in range(CLASSES):
            mean[y, y : y + BITS] = [(y >> bit) & 1 for bit in range(BITS)]
            spread[y, y : y + BITS] = self.sigma
        return mean, spread

    def table(
        self, n: int, seed: int = 0, shares: tuple[float, float, float] = (0.6, 0.2, 0.2)
    ) -> Table:
        """A sample of ``n`` people as a Table; every cost is 1 and nothing is known at the
        start.
        """
        random = np.random.default_rng(seed)
        y = random.integers(0, CLASSES, n)
        mean, spread = self.moments()
        values = random.normal(mean[y], spread[y])
        frame = pd.DataFrame(values, columns=[f"x{i}" for i in range(FEATURES)]).assign(
            y=y.astype(str)
        )
        schema = Schema(
            tuple(Feature(f"x{i}", "continuous") for i in range(FEATURES)),
            "y",
            "0",
            classes=tuple(str(c) for c in range(CLASSES)),
        )
        return Table.from_frame(frame, schema, name="cube", seed=seed, shares=shares)

    def posterior(self, values: npt.ArrayLike) -> Float64Array:
        """Exact class probabilities, (people, classes), from values as drawn, (people, features),
        NaN: not known.
        """
        known = np.asarray(values, dtype=float)[:, None, :]
        mean, spread = self.moments()
        logs = -0.5 * ((known - mean) / spread) ** 2 - np.log(spread)
        joint = np.nansum(logs, axis=2)
        likelihoods = np.exp(joint - joint.max(axis=1, keepdims=True))
        return np.asarray(likelihoods / likelihoods.sum(axis=1, keepdims=True))
