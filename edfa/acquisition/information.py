"""I(Y; X_i | x_A): how much the answer to one more question is expected to tell about the outcome,
person by person.

The value X_i is not known yet, so its likely values are drawn given what is known, and the model
answers with each of them. The estimate is the entropy of the mean answer less the mean entropy of
the answers, in nats (Jensen's form of the mutual information): never negative, and zero if the
model does not heed the feature.
"""

from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone

from edfa.acquisition.base import Policy
from edfa.data.table import Table
from edfa.errors import SettingError, check_known
from edfa.people import People
from edfa.predictors.base import Predictor, Progress, by_mask, distinct_cases, spread
from edfa.predictors.bn import BayesNet
from edfa.predictors.conditional import Sampler
from edfa.typing import BoolArray, Float32Array, Float64Array

SamplerName = Literal["knn", "bins", "exact"]


def expected_information(
    people: People,
    asked: BoolArray,
    sampler: Sampler | SamplerName = "knn",
    model: Predictor | None = None,
) -> Float64Array:
    """The expected information of each feature that is ``asked`` about.

    Parameters
    ----------
    people
        What is known of each person, and the model that decides.
    asked
        Which features to estimate, (people, features); known ones are left out.
    sampler
        Where the likely values of an unknown feature come from. ``"knn"``: from the training people
        who are nearest on what is known, each counting the same. ``"bins"``: from a small network,
        trained on the training rows when it is first needed, that gives the probability of each of
        at most 16 bins. ``"exact"``: from the model itself, which must be a BayesNet. Or any object
        with ``given``, as ``edfa.predictors.conditional.Sampler`` describes it.
    model
        A fitted predictor that answers in place of the one that decides, if that is too slow or too
        rough for this.

    Returns
    -------
    numpy.ndarray
        (people, features), in nats; NaN for what was not asked about.

    Raises
    ------
    UnknownNameError, SettingError
        If there is no sampler of this name, or ``"exact"`` has no BayesNet to ask.
    """
    predictor, source = people.predictor if model is None else model, _find_sampler(people, sampler)
    asked = asked & ~people.known  # what is known has nothing left to tell
    information = np.full(people.X.shape, np.nan)
    for mask, rows in by_mask(people.X):
        needed = asked[rows]
        if not needed.any():
            continue
        # People with the same facts are one case, which is worked out once.
        facts, case = distinct_cases(people.X[np.ix_(rows, np.flatnonzero(mask))])
        draw = source.given(spread(facts, mask))
        for feature in np.flatnonzero(needed.any(axis=0)).tolist():
            of_case = _information(predictor, mask, facts, feature, *draw(feature))
            information[rows, feature] = np.where(needed[:, feature], of_case[case], np.nan)
    return information


class InformationPolicy(Policy):
    """A policy that ranks features by expected information, with two settings for the estimate.

    Parameters
    ----------
    sampler, model
        As in ``expected_information``; without a ``model`` the one that decides is asked. A policy
        that is used without ``fit`` takes ``model`` as it is, which must be fitted.

    Attributes
    ----------
    model_
        A clone of ``model``, fitted on the training people by ``fit``.
    """

    sampler: Sampler | SamplerName = "knn"
    model: Predictor | None = None

    def fit(
        self,
        train: Table,
        predictor: Predictor | None = None,
        *,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Check the blanket, and fit the model that estimates information if there is one of its
        own.
        """
        super().fit(train, predictor)
        if self.model is not None:
            self.model_: Predictor = clone(self.model).fit(train.X, train.y)
        return self

    def learnt_state(self) -> dict[str, Any]:
        """The model that estimates information, if it is fitted and not the one that decides."""
        model = self._model
        return {"model": model} if hasattr(model, "classes_") else {}

    @property
    def _model(self) -> Predictor | None:
        return self.model_ if hasattr(self, "model_") else self.model

    def _information(self, people: People, asked: BoolArray) -> Float64Array:
        """The expected information of the features ``asked`` about, (people, features); NaN
        elsewhere.
        """
        return expected_information(people, asked, self.sampler, self._model)


def _find_sampler(people: People, sampler: Sampler | SamplerName) -> Sampler:
    """The sampler behind a name; an object is one already."""
    if not isinstance(sampler, str):
        return sampler
    if sampler == "knn":
        return people.background.neighbours
    if sampler == "bins":
        return people.background.bins
    check_known("sampler", sampler, ("knn", "bins", "exact"))
    network = people.background.model
    if not isinstance(network, BayesNet):
        raise SettingError(
            f"the exact sampler asks a BayesNet; the model in use is a {type(network).__name__}"
        )
    return network


def _information(
    predictor: Predictor,
    mask: BoolArray,
    facts: Float32Array,
    feature: int,
    values: Float32Array,
    weights: Float64Array,
) -> Float64Array:
    """The expected information of one feature for each case, (cases,).

    ``mask`` (features,) marks what all cases know and ``facts`` (cases, known features) are its
    values. ``values`` and ``weights`` (cases, draws) are what the feature may turn out to be. One
    model call asks about all of them; values of a case that the model cannot tell apart are asked
    about once, with their weights added up.
    """
    with_feature = mask.copy()
    with_feature[feature] = True
    cuts = predictor.cells(with_feature, feature)
    cells = (
        np.unique(values, return_inverse=True)[1]
        if cuts is None
        else np.searchsorted(cuts, values, side="right")
    )
    n_cells = int(cells.max()) + 1
    keys = (np.arange(len(facts))[:, None] * n_cells + cells.reshape(values.shape)).ravel()
    distinct, first, position = np.unique(keys, return_index=True, return_inverse=True)
    weight = np.bincount(position, weights=weights.ravel())
    case = distinct // n_cells
    rows = np.insert(
        facts[case], int(np.count_nonzero(mask[:feature])), values.ravel()[first], axis=1
    )
    probabilities = predictor.predict_known(with_feature, rows)
    *mean, mean_entropy = (
        np.bincount(case, weights=weight * part, minlength=len(facts))
        for part in (*probabilities.T, _entropy(probabilities))
    )
    return np.maximum(_entropy(np.stack(mean, axis=1)) - mean_entropy, 0)


def _entropy(probabilities: Float64Array) -> Float64Array:
    """The entropy of each row of class probabilities, (rows,), in nats."""
    return np.asarray(-(probabilities * np.log(np.maximum(probabilities, 1e-300))).sum(axis=1))
