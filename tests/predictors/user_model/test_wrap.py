"""A wrapped model has the last word; before that, two ways come near what it would say on
average.
"""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch
from own_people import HOMES, WEIGHTS, hide, mean_chance, people, two_numbers, wrap_two_numbers
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import edfa
from edfa.errors import ColumnError, ModelError, SettingError, UnknownNameError
from edfa.fingerprint import digest
from edfa.predictors.user_model.answers import Answers
from edfa.predictors.user_model.model import UserModel
from edfa.recourse.searchers.dice import DiCE
from edfa.recourse.searchers.probe import PROBE
from edfa.testing import check_predictor, check_wrapped

PARTIAL = ("distilled", "completed")
INCOME, DEBT = 0, 1


@pytest.fixture(scope="module")
def table():
    return people()


@pytest.fixture(scope="module")
def pipeline(table):
    made = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["home"]), remainder="passthrough"
    )
    return make_pipeline(made, LogisticRegression()).fit(
        table.train.frame[list(table.schema.names)], table.train.y
    )


@pytest.fixture(scope="module")
def forest(table):
    return RandomForestClassifier(10, max_depth=4, random_state=0).fit(table.train.X, table.train.y)


@pytest.mark.parametrize("partial", PARTIAL)
def test_both_ways_keep_the_contract_of_predictors(partial, table, forest):
    check_predictor(
        lambda: edfa.wrap(forest, partial, columns="encoded"), table.train.X, table.train.y
    )


def test_three_classes_keep_the_contract_too(table):
    classes = np.digitize(table.train.X[:, 0] - table.train.X[:, 1], [-0.5, 0.5])
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(table.train.X, classes)
    for partial in PARTIAL:
        check_predictor(
            lambda way=partial: edfa.wrap(model, way, columns="encoded"), table.train.X, classes
        )


def test_the_contract_of_own_models_holds_whatever_they_are(table, pipeline, forest):
    check_wrapped(pipeline, table, classes=table.schema.classes)
    check_wrapped(two_numbers, table, columns=list(WEIGHTS), partial="completed", n_completions=8)
    check_wrapped(forest, table, columns="encoded", classes=table.schema.classes)


def test_the_contract_finds_a_judge_that_is_not_the_model(table, monkeypatch):
    monkeypatch.setattr(
        UserModel, "is_enough", lambda self, mask: False
    )  # the distilled model answers for everything
    with pytest.raises(AssertionError, match="the answer is the model's own"):
        check_wrapped(two_numbers, table, columns=list(WEIGHTS))


def test_the_contract_finds_survival_that_is_asked_of_another_model(table, monkeypatch):
    def by_the_view(predictor, rows):
        return predictor.decide(predictor.view_.predict_known(predictor.varies_, rows))

    monkeypatch.setattr("edfa.recourse.survival._decide", by_the_view)
    with pytest.raises(
        AssertionError, match="whether a plan survives is asked of the model itself"
    ):
        check_wrapped(two_numbers, table, columns=list(WEIGHTS))


def test_the_contract_finds_unknown_facts_that_are_handed_over_as_missing_values(
    table, monkeypatch
):
    def with_gaps(self, mask, known):
        rows = np.full((len(known), len(mask)), np.nan, dtype=np.float32)
        rows[:, mask] = known
        return self.source_.ask(rows)

    model = HistGradientBoostingClassifier(max_iter=5).fit(table.train.X, table.train.y)
    monkeypatch.setattr(UserModel, "_answer", with_gaps)
    monkeypatch.setattr(Answers, "count", lambda self, calls, rows: None)
    monkeypatch.setattr("edfa.check_wrapped._check_survival", lambda *_: None)
    with pytest.raises(AssertionError, match="every call is counted"):
        check_wrapped(model, table, columns="encoded", classes=table.schema.classes)
    monkeypatch.setattr(UserModel, "asked_", property(lambda self: Counted(self.own.questions)))
    with pytest.raises(AssertionError, match="never given a missing value"):
        check_wrapped(model, table, columns="encoded", classes=table.schema.classes)


class Counted:
    """A true count of questions."""

    def __init__(self, questions):
        self.calls, self.rows = len(questions), sum(map(len, questions))


def test_the_contract_finds_a_model_that_is_fitted_again(table):
    class Learns(RandomForestClassifier):
        def predict_proba(self, people):
            self.asked = getattr(self, "asked", 0) + 1
            return (
                super().predict_proba(people) if self.asked < 9 else np.full((len(people), 2), 0.5)
            )

    model = Learns(5, max_depth=3, random_state=0).fit(table.train.X, table.train.y)
    with pytest.raises(AssertionError):
        check_wrapped(model, table, columns="encoded", classes=table.schema.classes)


def test_with_everything_known_the_answers_are_those_about_the_raw_rows(table, pipeline):
    """Numbers far out of range and a level that training never showed are lost in encoding, and are
    kept beside it.
    """
    strange = table.test.frame.copy()
    strange.loc[0, "income"], strange.loc[1, "debt"], strange.loc[2, "home"] = 9.75, -8.25, "castle"
    matrix = table.encoder.encode(strange)
    model = edfa.wrap(pipeline, classes=table.schema.classes).fit_table(table.train)
    own = pipeline.predict_proba(strange[list(table.schema.names)])
    assert np.abs(model.predict_proba(matrix) - own)[:3].max(axis=1).min() > 1e-3
    model.remember(matrix, strange)
    np.testing.assert_array_equal(model.predict_proba(matrix), own)
    many = np.tile(matrix, (6000 // len(matrix), 1))  # more rows than are looked up one by one
    np.testing.assert_array_equal(model.predict_proba(many)[: len(matrix)], own)


def test_features_that_the_model_does_not_read_change_nothing(table):
    model = wrap_two_numbers().fit_table(table.train)
    matrix = hide(table.test.X, 2, 3, 4)
    np.testing.assert_array_equal(model.predict_proba(matrix)[:, 1], two_numbers(table.test.frame))
    assert model.varies_.tolist() == [True, True, False, False, False]
    assert model.is_enough(np.array([True, True, False, False, False]))


def test_a_column_that_makes_no_difference_need_not_be_known(table):
    """The model wants height and never looks at it: with all else known, the answer is its own."""

    def model(frame):
        assert "height" in frame
        return two_numbers(frame)

    wrapped = edfa.wrap(model, columns=["height", *WEIGHTS]).fit_table(table.train)
    matrix = hide(table.test.X, 2, 3, 4)
    np.testing.assert_array_equal(
        wrapped.predict_proba(matrix)[:, 1], two_numbers(table.test.frame)
    )


@pytest.mark.parametrize(("partial", "bound"), [("distilled", 0.06), ("completed", 0.04)])
def test_partial_answers_come_near_the_mean_in_closed_form(partial, bound):
    """Facts are independent: with one known, the model's mean over the other is an integral over a
    normal.
    """
    many = people(2400, seed=3)
    model = wrap_two_numbers(partial, n_completions=64).fit_table(many.train)
    for known, unknown in ((INCOME, DEBT), (DEBT, INCOME)):
        names = list(WEIGHTS)
        score = WEIGHTS[names[known]] * many.test.frame[names[known]]
        expected = mean_chance(score, WEIGHTS[names[unknown]])
        given = model.predict_proba(hide(many.test.X, unknown))[:, 1]
        assert np.sqrt(((given - expected) ** 2).mean()) < bound
        assert (
            np.sqrt(((model.prior_[1] - expected) ** 2).mean()) > 2 * bound
        )  # saying nothing is far worse
    nothing = model.predict_proba(np.full((1, 5), np.nan))[0, 1]
    assert nothing == pytest.approx(two_numbers(many.train.frame).mean())


def test_completed_is_the_mean_over_its_completions(table):
    model = wrap_two_numbers("completed", n_completions=7).fit_table(table.train)
    matrix = hide(
        table.test.X[:9], DEBT, 2, 3, 4
    )  # it looks for near people by what the model reads
    filled = model.view_.complete(matrix)
    expected = [two_numbers(table.encoder.decode(rows)).mean() for rows in filled]
    np.testing.assert_allclose(model.predict_proba(matrix)[:, 1], expected, rtol=1e-12)


def test_a_model_is_neither_fitted_nor_copied_by_clones(table, forest):
    wrapped = edfa.wrap(forest, columns="encoded", classes=table.schema.classes)
    assert clone(wrapped).own.model is forest
    assert clone(wrapped).fit_table(table.train).own.model is forest


def test_another_model_has_another_fingerprint(table, forest):
    other = RandomForestClassifier(10, max_depth=4, random_state=1).fit(
        table.train.X, table.train.y
    )
    ready = [
        edfa.wrap(m, "completed", columns="encoded").fit(table.train.X, table.train.y)
        for m in (forest, other)
    ]
    assert digest(ready[0]) != digest(ready[1])


def test_calls_are_counted_and_answers_remembered(table):
    asked = []

    def model(frame):
        asked.append(len(frame))
        return two_numbers(frame)

    wrapped = edfa.wrap(model, "completed", columns=list(WEIGHTS), batch_rows=50).fit_table(
        table.train
    )
    assert (wrapped.asked_.calls, wrapped.asked_.rows) == (
        len(asked) - 1,
        sum(asked) - 64,
    )  # asked twice about 64
    assert max(asked) <= 64
    before, remembered = len(asked), wrapped.asked_.remembered
    first = wrapped.predict_proba(table.test.X)
    assert len(asked) > before
    before = len(asked)
    np.testing.assert_array_equal(wrapped.predict_proba(table.test.X), first)
    assert len(asked) == before
    assert wrapped.asked_.remembered == remembered + len(table.test)
    assert str(wrapped.asked_).endswith("answers remembered")


def test_threads_get_the_answers_that_one_gets(table):
    wrapped = wrap_two_numbers("completed", n_completions=8).fit_table(table.train)
    parts = [hide(table.test.X, *hidden) for hidden in ((), (DEBT,), (INCOME,), (2, 3))] * 4
    expected = [
        wrap_two_numbers("completed", n_completions=8).fit_table(table.train).predict_proba(p)
        for p in parts
    ]
    before = wrapped.asked_.rows + wrapped.asked_.remembered
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(wrapped.predict_proba, parts))
    for answer, right in zip(answers, expected, strict=True):
        np.testing.assert_array_equal(answer, right)
    assert (
        wrapped.asked_.rows + wrapped.asked_.remembered
        == before + len(table.test) * (2 + 8 + 8) * 4
    )


def test_a_wrapped_model_travels_to_another_process(table, forest):
    wrapped = edfa.wrap(forest, columns="encoded").fit(table.train.X, table.train.y)
    other = pickle.loads(pickle.dumps(wrapped))  # noqa: S301
    matrix = hide(table.test.X, DEBT)
    np.testing.assert_array_equal(other.predict_proba(matrix), wrapped.predict_proba(matrix))


def test_a_threshold_decides_for_the_favourable_class(table):
    wrapped = wrap_two_numbers(threshold=0.8).fit_table(table.train)
    expected = (two_numbers(table.test.frame) >= 0.8).astype(int)
    np.testing.assert_array_equal(wrapped.predict(table.test.X), expected)


def test_classes_in_the_wrong_order_are_warned_of(table):
    with pytest.warns(UserWarning, match="against their outcomes"):
        edfa.wrap(two_numbers, columns=list(WEIGHTS), classes=("yes", "no")).fit_table(table.train)


def test_classes_in_another_order_are_put_in_the_cards(table):
    def yes_first(frame):
        chance = two_numbers(frame)
        return np.stack([chance, 1 - chance], axis=1)

    wrapped = edfa.wrap(yes_first, columns=list(WEIGHTS), classes=("yes", "no")).fit_table(
        table.train
    )
    np.testing.assert_array_equal(
        wrapped.predict_proba(table.test.X)[:, 1], two_numbers(table.test.frame)
    )


class Noisy:
    """Answers with a little chance of its own each time, or decides otherwise every other time."""

    def __init__(self, noise):
        self.random, self.noise = np.random.default_rng(0), noise

    def __call__(self, frame):
        return np.clip(two_numbers(frame) + self.noise * self.random.normal(size=len(frame)), 0, 1)


def test_a_model_that_changes_its_answers_is_refused(table):
    with pytest.raises(ModelError, match="Noisy answers one person in two ways"):
        edfa.wrap(Noisy(0.05), columns=list(WEIGHTS)).fit_table(table.train)
    edfa.wrap(Noisy(1e-12), "completed", columns=list(WEIGHTS)).fit_table(
        table.train
    )  # the last bits may move


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda f: np.full(len(f), np.nan), "NaN or an infinite number in row 0"),
        (lambda f: np.full((len(f), 2), 0.6), r"adds up to 1\.2"),
        (
            lambda f: np.stack([np.full(len(f), 1.5), np.full(len(f), -0.5)], axis=1),
            "no probabilities",
        ),
        (lambda f: np.full(3, 0.5), "asked about 216 people and answered 3 rows"),
        (lambda f: np.full((len(f), 3), 1 / 3), "3 probabilities; the card has 2 classes"),
        (lambda f: ["yes"] * len(f), "not probabilities"),
        (lambda f: 1 / 0, "failed on .* rows: ZeroDivisionError"),
    ],
)
def test_answers_that_are_no_probabilities_name_the_model(answer, words, table):
    with pytest.raises(ModelError, match=words):
        edfa.wrap(answer, columns=list(WEIGHTS)).fit_table(table.train)


def test_a_column_that_the_table_lacks_is_named_with_the_nearest(table):
    with pytest.raises(ColumnError, match=r"'incomes'.*did you mean 'income'"):
        edfa.wrap(two_numbers, columns=["incomes", "debt"]).fit_table(table.train)


def test_other_classes_than_the_cards_are_named(table):
    model = LogisticRegression().fit(
        table.train.frame[["income"]], np.where(table.train.y, "good", "bad")
    )
    with pytest.raises(ModelError, match="'bad', 'good', the card's 'no', 'yes'"):
        edfa.wrap(model).fit_table(table.train)


def test_settings_that_cannot_be_are_refused(table):
    with pytest.raises(UnknownNameError, match="partial"):
        edfa.wrap(two_numbers, "distiled", columns=list(WEIGHTS)).fit_table(table.train)
    with pytest.raises(SettingError, match="n_completions"):
        wrap_two_numbers(n_completions=1).fit_table(table.train)
    with pytest.raises(SettingError, match="fit_table"):
        wrap_two_numbers().fit(table.train.X, table.train.y)


@pytest.fixture(scope="module")
def module(table):
    """A small neural network of encoded people, trained a little."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    matrix, y = torch.as_tensor(table.train.X), torch.as_tensor(table.train.y).float()
    optimiser = torch.optim.Adam(net.parameters(), lr=0.05)
    for _ in range(120):
        optimiser.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(net(matrix)[:, 0], y).backward()
        optimiser.step()
    return net.eval()


def test_a_torch_module_answers_and_gives_gradients(table, module):
    wrapped = edfa.wrap(module, columns="encoded").fit_table(table.train)
    logits = module(torch.as_tensor(table.test.X))[:, 0].detach().double().numpy()
    np.testing.assert_allclose(
        wrapped.predict_proba(table.test.X)[:, 1], 1 / (1 + np.exp(-logits)), atol=1e-6
    )
    everything = np.ones(5, dtype=bool)
    rows = torch.tensor(table.test.X[:5], requires_grad=True)
    made = wrapped.differentiable(everything)(rows)
    np.testing.assert_allclose(
        torch.softmax(made, 1).detach(), wrapped.predict_proba(table.test.X[:5]), atol=1e-6
    )
    made[:, 1].sum().backward()
    assert float(rows.grad.abs().sum()) > 0
    assert wrapped.differentiable(everything & (np.arange(5) > 0)) is None
    assert wrap_two_numbers().fit_table(table.train).differentiable(everything) is None


@pytest.mark.parametrize(
    "make", [lambda t: DiCE(t, "gradient", plans=2, steps=20), lambda t: PROBE(t, steps=20)]
)
def test_a_gradient_searcher_finds_plans_for_a_torch_module(make, table, module):
    wrapped = edfa.wrap(module, columns="encoded").fit_table(table.train)
    refused = table.test.X[wrapped.predict(table.test.X) == 0][:8]
    plans = edfa.find_recourse(
        edfa.People(refused, edfa.Background.of(table.train, wrapped)), make(table.train)
    )
    assert plans.legal.any()
    assert (wrapped.predict(plans.rows()) == 1).all()


def test_categories_of_the_model_come_from_a_frame_like_its_own(table):
    frame = table.train.frame[list(table.schema.names)].astype({"home": pd.CategoricalDtype(HOMES)})
    model = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype").fit(
        frame, table.train.y
    )
    wrapped = edfa.wrap(model, like=frame, classes=table.schema.classes).fit_table(table.train)
    raw = table.test.frame[frame.columns].astype({"home": pd.CategoricalDtype(HOMES)})
    np.testing.assert_array_equal(wrapped.predict_proba(table.test.X), model.predict_proba(raw))


def test_truth_values_of_the_model_are_words_of_the_card():
    """The word "False" is no truth: neither in the contract nor in answers about people as they
    were given.
    """
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"income": random.normal(size=300).round(2), "car": random.random(300) < 0.5}
    )
    score = frame["income"] + 2 * frame["car"] - 1
    frame["repays"] = np.where(score + random.normal(size=300) > 0, "yes", "no")
    features = (
        edfa.Feature("income", "continuous", start=True, change="up"),
        edfa.Feature("car", "categorical"),
    )
    table = edfa.Table.from_frame(frame, edfa.Schema(features, "repays", "yes"), name="cars")
    model = LogisticRegression().fit(frame[["income", "car"]], frame["repays"])
    check_wrapped(model, table, like=frame[["income", "car"]].head())
    wrapped = edfa.wrap(model, like=frame[["income", "car"]].head()).fit_table(table.train)
    far = pd.DataFrame(
        {"income": [9.0, 9.5], "car": ["False", "True"]}
    )  # out of range: asked about as they are
    rows, answers = wrapped.source_.ask_given(table.encoder.encode(far), far)
    assert rows.tolist() == [0, 1]
    np.testing.assert_allclose(
        answers, model.predict_proba(far.assign(car=[False, True])), rtol=1e-12
    )


def test_a_model_that_writes_into_many_rows_changes_neither_people_nor_answers(forest):
    """More rows than are looked up one by one are handed over without being copied on the way."""
    many = people(8000, seed=5)
    matrix = many.train.X.copy()

    def writes(rows):
        chance = forest.predict_proba(rows)
        rows[:] = 0
        return chance

    assert len(matrix) > 4096
    wrapped = edfa.wrap(writes, "completed", columns="encoded").fit_table(many.train)
    np.testing.assert_array_equal(many.train.X, matrix)
    np.testing.assert_array_equal(
        wrapped.predict_proba(many.test.X[:9]), forest.predict_proba(many.test.X[:9])
    )
