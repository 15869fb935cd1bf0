"""What a user model says on average over likely completions of what is not known.

``Completed`` is the view of a ``UserModel`` with ``partial="completed"``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from edfa.predictors.conditional import Neighbours
from edfa.typing import BoolArray, Float32Array, Float64Array

__all__ = ["Completed"]

PEOPLE = 1_000  # completed at a time


@dataclass(frozen=True, eq=False)
class Completed:
    """The mean of a model's answers over completions from near training people.

    Parameters
    ----------
    near
        Finds the near people; it gives as many completions of a person as it has neighbours.
    reads
        Which features the model reads, (features,); the others are zeros in what it is asked.
    """

    near: Neighbours
    reads: BoolArray

    def learnt_state(self) -> Mapping[str, Any]:
        """What completions are taken from, for fingerprints."""
        return {"near": self.near.learnt_state()}

    def mean(
        self, mask: BoolArray, known: Float32Array, ask: Callable[[Float32Array], Float64Array]
    ) -> Float64Array:
        """The mean answer about people of whom the same features are known.

        Parameters
        ----------
        mask
            Which features are known, (features,).
        known
            Their values, (people, known features).
        ask
            Gives the model's probabilities (n, classes) of complete encoded rows (n, features).

        Returns
        -------
        Probabilities (people, classes).
        """
        parts = []
        for part in np.array_split(known, max(1, -(-len(known) // PEOPLE))):
            facts = np.full((len(part), len(mask)), np.nan, dtype=np.float32)
            facts[:, mask] = part
            rows = np.where(self.reads, self.near.complete(facts), np.float32(0))
            answers = ask(rows.reshape(-1, len(mask)))
            parts.append(answers.reshape(len(part), rows.shape[1], -1).mean(axis=1))
        return np.concatenate(parts)
