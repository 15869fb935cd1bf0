"""What a model uses, against models of which it is known."""

import numpy as np
import pytest

from edfa import Blanket
from edfa.predictors.user_model.usage import Usage, UsageReport, permutation_usage


@pytest.fixture(scope="module")
def X():  # noqa: N802
    columns = np.random.default_rng(0).normal(size=(1500, 4)).astype(np.float32)
    columns[:, 3] = columns[:, 0]  # the last repeats the first
    return columns


def decide(probabilities):
    return probabilities.argmax(axis=1)


def model(chance):
    return lambda x: np.column_stack([1 - chance(x), chance(x)]).astype(float)


def test_a_model_of_one_feature_uses_that_one(X):  # noqa: N803
    usage = permutation_usage(model(lambda x: x[:, 1] > 0), decide, X)
    assert usage.used.tolist() == [False, True, False, False]
    assert usage.moved.tolist() == [0, 1, 0, 0]
    # a fair coin dealt out again differs half of the time
    share = (X[:, 1] > 0).mean()
    assert usage.turned[1] == pytest.approx(2 * share * (1 - share), abs=0.03)


def test_of_two_equal_features_the_one_that_is_read(X):  # noqa: N803
    first = permutation_usage(model(lambda x: x[:, 0] > 0), decide, X)
    both = permutation_usage(model(lambda x: (x[:, 0] + x[:, 3]) > 0), decide, X)
    assert first.used.tolist() == [True, False, False, False]
    assert both.used.tolist() == [True, False, False, True]


def test_moved_but_never_turned(X):  # noqa: N803
    usage = permutation_usage(model(lambda x: 0.6 + 0.1 * (x[:, 2] > 0)), decide, X)
    assert usage.used.tolist() == [False, False, True, False]
    assert not usage.turned.any()
    assert usage.moved[2] == pytest.approx(0.1)


def test_a_constant_model_and_constant_columns_use_nothing(X):  # noqa: N803
    asked = []

    def ask(rows):
        asked.append(len(rows))
        return np.full((len(rows), 2), 0.5)

    assert not permutation_usage(ask, decide, X).used.any()
    asked.clear()
    assert not permutation_usage(model(lambda x: x[:, 0] > 0), decide, np.ones_like(X)).used.any()
    permutation_usage(ask, decide, np.ones_like(X))
    assert asked == [1500], "nothing to permute, nothing to ask"


def test_no_more_people_than_said_and_the_same_by_seed(X):  # noqa: N803
    asked = []

    def ask(rows):
        asked.append(len(rows))
        return model(lambda x: 1 / (1 + np.exp(-x[:, 0].astype(float))))(rows)

    usage, again = (permutation_usage(ask, decide, X, seed=3, most=200) for _ in range(2))
    assert set(asked) == {200}
    assert usage.turned.tolist() == again.turned.tolist()
    assert usage.moved.tolist() == again.moved.tolist()
    assert (
        usage.moved.tolist() != permutation_usage(ask, decide, X, seed=4, most=200).moved.tolist()
    )


def test_against_the_blanket():
    usage = Usage(np.array([0.2, 0.1, 0.0, 0.0]), np.array([0.5, 0.4, 0.0, 0.0]))
    blanket = Blanket("repays", {"savings": ("wage",)})
    report = UsageReport(usage, blanket, ("savings", "<b>height</b>", "wage", "shoe"))
    assert (report.shared, report.only_used) == (("savings",), ("<b>height</b>",))
    assert report.only_blanket == ("wage",)
    frame = report.frame().set_index("feature")
    assert frame["used"].tolist() == [True, True, False, False]
    assert frame["in_blanket"].tolist() == [True, False, True, False]
    assert frame.loc["savings", "turned"] == 0.2
    assert "leaves out 1 feature that says something about repays: wage" in str(report)
    shown = report._repr_html_()
    assert "&lt;b&gt;height" in shown
    assert "<b>height" not in shown


def test_every_sentence_has_its_plural_and_its_none():
    names = ("a", "b", "c", "d")
    everything = UsageReport(Usage(np.ones(4), np.ones(4)), Blanket("y", {"a": (), "b": ()}), names)
    assert everything.sentences == (
        "The model uses 2 features that say something about y: a, b.",
        "It uses 2 features that were not seen to say more about y: c, d.",
        "It leaves out no feature that says something about y.",
    )
