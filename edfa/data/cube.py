"""CUBE: eight classes, twenty features, three of which spell each class in bits; the yardstick of feature acquisition.

Class y sets features y, y + 1 and y + 2 to its bits, the lowest first, with noise; all others are noise around a half.
The posterior is known for any subset of features, so every order of asking can be held against the best greedy one.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from edfa.data.schema import Feature, Schema
from edfa.data.table import Table
from edfa.typing import Float64Array

__all__ = ["Cube"]

CLASSES, FEATURES, BITS = 8, 20, 3
OTHER = 0.3  # the noise of a feature that spells nothing


@dataclass(frozen=True)
class Cube:
    """The world with noise ``sigma`` on the spelling features.

    Examples
    --------
    >>> cube = Cube(0.1)
    >>> cube.posterior(np.full((1, 20), np.nan))
    array([[0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125]])
    """

    sigma: float = 0.1

    def moments(self) -> tuple[Float64Array, Float64Array]:
        """Mean and spread of every feature in every class, (classes, features)."""
        mean, spread = np.full((CLASSES, FEATURES), 0.5), np.full((CLASSES, FEATURES), OTHER)
        for y in range(CLASSES):
            mean[y, y : y + BITS] = [(y >> bit) & 1 for bit in range(BITS)]
            spread[y, y : y + BITS] = self.sigma
        return mean, spread

    def table(self, n: int, seed: int = 0, shares: tuple[float, float, float] = (0.6, 0.2, 0.2)) -> Table:
        """A sample; every cost is 1 and nothing is known at the start."""
        random = np.random.default_rng(seed)
        y = random.integers(0, CLASSES, n)
        mean, spread = self.moments()
        values = random.normal(mean[y], spread[y])
        frame = pd.DataFrame(values, columns=[f"x{i}" for i in range(FEATURES)]).assign(y=y.astype(str))
        schema = Schema(
            tuple(Feature(f"x{i}", "continuous") for i in range(FEATURES)),
            "y",
            "0",
            classes=tuple(str(c) for c in range(CLASSES)),
        )
        return Table.from_frame(frame, schema, name="cube", seed=seed, shares=shares)

    def posterior(self, values: npt.ArrayLike) -> Float64Array:
        """P(y | what is known), exactly; values as drawn, NaN for not known."""
        known = np.asarray(values, dtype=float)[:, None, :]
        mean, spread = self.moments()
        logs = -0.5 * ((known - mean) / spread) ** 2 - np.log(spread)
        joint = np.nansum(logs, axis=2)
        chances = np.exp(joint - joint.max(axis=1, keepdims=True))
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))
