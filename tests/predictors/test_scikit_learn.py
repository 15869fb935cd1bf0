from unittest import SkipTest

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from edfa import BayesNet, FTTransformer, MaskedMLP, SubsetXGB

# Checks of scikit-learn that contradict a contract of ours.
OTHERWISE = {
    "check_dtype_object": (
        "wants a TypeError for a matrix of dicts; ours is a DataError, as for all bad matrices"
    ),
}
MODELS = [
    SubsetXGB(n_estimators=10),
    SubsetXGB("nan", n_estimators=10),
    pytest.param(MaskedMLP(epochs=60, learning_rate=0.01), marks=pytest.mark.long),
    pytest.param(FTTransformer(epochs=15, learning_rate=0.01), marks=pytest.mark.long),
    BayesNet(),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_scikit_learns_own_checks(model):
    failed = {}
    for estimator, check in estimator_checks_generator(model):
        name = check.func.__name__ if hasattr(check, "func") else str(check)
        try:
            check(estimator)
        except SkipTest:
            continue
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"[:300]
    assert set(failed) <= set(OTHERWISE), failed
