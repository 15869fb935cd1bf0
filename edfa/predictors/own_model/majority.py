"""What a model of the user's own decides in most completions of one person: what that person is
told.
"""

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from edfa.errors import ModelError
from edfa.predictors.base import Predictor, Progress
from edfa.typing import BoolArray, Float32Array, Float64Array, Int64Array

if TYPE_CHECKING:
    from edfa.predictors.wrapped import Wrapped

__all__ = ["Majority"]

TIE = 0.25  # of a completion: as many for as against is no majority
ROWS = 100_000  # asked about at once


class Majority(Predictor):
    """The share of one person's completions in which a model decides for each class.

    It answers about the person with some known facts replaced by others; what is not known stays as
    it is in the completions. The favourable class is decided where it is the decision in more than
    half of them.

    Parameters
    ----------
    model
        The model, which is asked about complete rows.
    completions
        (k, features) the person as they may be.
    favourable
        The position of the favourable class.
    """

    refits: ClassVar[bool] = False

    def __init__(self, model: "Wrapped", completions: Float32Array, favourable: int) -> None:
        self.model, self.completions, self.favourable, self.threshold = (
            model,
            completions,
            favourable,
            0.5,
        )
        self.classes_, self.prior_, self.varies_ = model.classes_, model.prior_, model.varies_
        self.n_features_in_ = model.n_features_in_

    def _fit(self, matrix: Float32Array, codes: Int64Array, progress: Progress | None) -> None:
        raise ModelError("a majority learns nothing: it asks a model that is fitted")

    def _answer(self, mask: BoolArray, known: Float32Array) -> Float64Array:
        size = max(1, ROWS // len(self.completions))
        parts = [self._shares(mask, known[i : i + size]) for i in range(0, len(known), size)]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.classes_)))

    def _shares(self, mask: BoolArray, known: Float32Array) -> Float64Array:
        """The shares (people, classes), drawn a little towards one half so that their log odds are
        finite.
        """
        k, for_it = len(self.completions), self._about(len(self.classes_))
        rows = np.tile(self.completions, (len(known), 1, 1))
        rows[:, :, mask] = known[:, None]
        decided = self.model.decide(self.model.ask(rows.reshape(-1, len(mask)))).reshape(
            len(known), k
        )
        shares = (decided[:, :, None] == np.arange(len(self.classes_))).sum(axis=1) + TIE
        favourable = shares[:, for_it] / (k + 1)
        shares[:, for_it] = 0
        shares *= ((1 - favourable) / shares.sum(axis=1))[:, None]
        shares[:, for_it] = favourable
        return np.asarray(shares)
