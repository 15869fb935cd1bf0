"""What a stop rule can watch: any number known at the step, fixed before calibration, small where one is sure.

The certificate holds for every signal; a better one lets more people stop earlier.
"""

from typing import Any

import numpy as np

from edfa.errors import DataError
from edfa.recourse.plans import Plans
from edfa.typing import Float64Array

__all__ = ["SurvivalScore", "facts_of", "plan_uncertainty", "uncertainty"]


def uncertainty(chances: Any) -> Float64Array:
    """The paper's signal: one minus the chance of the likeliest class.

    >>> uncertainty([[0.9, 0.1], [0.4, 0.6]]).round(2)
    array([0.1, 0.4])
    """
    return np.asarray(1 - np.asarray(chances, dtype=np.float64).max(axis=-1))


def plan_uncertainty(chances: Any, changed: Any) -> Float64Array:
    """The larger of the uncertainties about the person as they are and as the plan would have them.

    The paper's signal watches the prediction alone, but half of the loss comes from the plan.

    >>> plan_uncertainty([[0.9, 0.1]], [[0.45, 0.55]]).round(2)
    array([0.45])
    """
    return np.maximum(uncertainty(chances), uncertainty(changed))


class SurvivalScore:
    """The chance that a plan fails, learnt from runs of people other than those of the calibration.

    ``facts`` are numbers known at the step, such as both uncertainties and the share of features left; of plans, those
    of ``facts_of``. Give a fitted score as ``signal`` to whatever certifies from plans.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> facts = random.random((200, 2))
    >>> score = SurvivalScore().fit(facts, facts[:, 0] > 0.5)
    >>> bool(score([[0.9, 0.5]])[0] > score([[0.1, 0.5]])[0])
    True
    """

    def fit(self, facts: Any, loss: Any) -> "SurvivalScore":
        """Learn from steps: their facts or plans, and whether the plan was lost (NaN: there was none)."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        lost = np.asarray(loss, dtype=np.float64)
        legal = ~np.isnan(lost)
        if len(np.unique(lost[legal])) < 2:
            raise DataError("a survival score needs plans that lasted and plans that failed")
        model = make_pipeline(StandardScaler(), LogisticRegression())
        self._model = model.fit(_numbers(facts)[legal], lost[legal].astype(np.int64))
        return self

    def __call__(self, facts: Any) -> Float64Array:
        """The signal: the chance of failing, from facts or plans."""
        if not hasattr(self, "_model"):
            raise DataError("this score has learnt nothing yet; call fit(facts, loss) first")
        return np.asarray(self._model.predict_proba(_numbers(facts))[:, 1], dtype=np.float64)


def facts_of(plans: Plans) -> Float64Array:
    """What is known of the first plan at each step: both uncertainties, the share of features left, its size."""
    if plans.people.predictor is None:
        raise DataError("these plans were read from a file and have no predictor; a signal needs its chances")
    legal, first = plans.legal, plans.first[plans.legal]
    own = uncertainty(plans.people.predictor.predict_proba(plans.people.X))
    plan = np.ones((len(own), 4))
    plan[legal] = np.column_stack(
        [1 - plans.probability_after[first], plans.l0[first], plans.l2[first], plans.effort[first]]
    )
    return np.column_stack([own, np.isnan(plans.people.X).mean(axis=1), plan])


def _numbers(facts: Any) -> Float64Array:
    return facts_of(facts) if isinstance(facts, Plans) else np.asarray(facts, dtype=np.float64)
