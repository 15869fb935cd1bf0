"""What a stop rule can watch: any number known at the step, fixed before calibration, small where one is sure.

The certificate holds for every signal; a better one lets more people stop earlier.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from edfa.errors import DataError

__all__ = ["SurvivalScore", "plan_uncertainty", "uncertainty"]

Floats = npt.NDArray[np.float64]


def uncertainty(chances: Any) -> Floats:
    """The paper's signal: one minus the chance of the likeliest class.

    >>> uncertainty([[0.9, 0.1], [0.4, 0.6]]).round(2)
    array([0.1, 0.4])
    """
    return np.asarray(1 - np.asarray(chances, dtype=np.float64).max(axis=-1))


def plan_uncertainty(chances: Any, changed: Any) -> Floats:
    """The larger of the uncertainties about the person as they are and as the plan would have them.

    The paper's signal watches the prediction alone, but half of the loss comes from the plan.

    >>> plan_uncertainty([[0.9, 0.1]], [[0.45, 0.55]]).round(2)
    array([0.45])
    """
    return np.maximum(uncertainty(chances), uncertainty(changed))


class SurvivalScore:
    """The chance that a plan fails, learnt from runs of people other than those of the calibration.

    ``facts`` are numbers known at the step, such as both uncertainties, the margin and the share of cost left.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> facts = random.random((200, 2))
    >>> score = SurvivalScore().fit(facts, facts[:, 0] > 0.5)
    >>> bool(score([[0.9, 0.5]])[0] > score([[0.1, 0.5]])[0])
    True
    """

    def fit(self, facts: Any, loss: Any) -> "SurvivalScore":
        """Learn from legal steps: their facts, and whether the plan was lost."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        lost = np.asarray(loss).astype(np.int64)
        if len(np.unique(lost)) < 2:
            raise DataError("a survival score needs plans that lasted and plans that failed")
        self._model = make_pipeline(StandardScaler(), LogisticRegression()).fit(np.asarray(facts), lost)
        return self

    def __call__(self, facts: Any) -> Floats:
        """The signal: the chance of failing."""
        if not hasattr(self, "_model"):
            raise DataError("this score has learnt nothing yet; call fit(facts, loss) first")
        return np.asarray(self._model.predict_proba(np.asarray(facts))[:, 1], dtype=np.float64)
