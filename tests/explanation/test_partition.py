import numpy as np
import pytest
from exact import ExactSampler, as_blanket, exact_model

import edfa
from edfa import Blanket, SubsetXGB
from edfa.data.synthetic import credit_story
from edfa.errors import DataError, UnknownNameError
from edfa.explanation.necessity import Support, sweep
from edfa.explanation.partition import explain, latent_recourse, transitions
from edfa.explanation.statements import statements
from edfa.predictors import align

STORY = credit_story()
NAMES = STORY.features
BLANKET = as_blanket(STORY)
PEOPLE = STORY.codes(STORY.sample(2000, 0)).astype(np.float32)
SUPPORT = Support.of(PEOPLE)
TABLE = edfa.load("german")


def person(**facts):
    return np.array([[facts.get(name, np.nan) for name in NAMES]], dtype=np.float32)


def parts(**facts):
    return explain(person(**facts), exact_model(STORY), SUPPORT, NAMES, BLANKET)


def test_every_reason_by_hand():
    """No savings, paid late: the wage explains it only once the late payment is known."""
    before = parts(savings=0, wage_came_late=1, telephone=1).person(0)
    assert set(before.counterfactual) == {"savings"}
    assert dict(before.semifactual) == {"late_payment": "not_known", "wage_came_late": "blocked"}
    assert before.alterfactual == ("employment", "telephone")
    assert not before.violations
    alone = parts(savings=1, wage_came_late=0, late_payment=0).person(0)
    assert alone.semifactual["savings"] == "not_decisive", (
        "late or not decides: savings alone turn nothing"
    )


def test_a_child_unlocks_its_spouse_and_the_transition_is_latent_recourse():
    facts = {"savings": 1, "wage_came_late": 1}
    before, after = parts(**facts), parts(**facts, late_payment=1)
    assert before.person(0).semifactual["wage_came_late"] == "blocked"
    assert "wage_came_late" in after.person(0).counterfactual
    moved = transitions(before, after)
    row = moved[moved.feature == "wage_came_late"].iloc[0]
    assert (row.before, row.after, row.latent, row.learnt) == (
        "semifactual",
        "counterfactual",
        True,
        ("late_payment",),
    )
    gain = latent_recourse(
        person(**facts),
        NAMES.index("late_payment"),
        exact_model(STORY),
        SUPPORT,
        ExactSampler(STORY),
    )
    chance = STORY.posterior(person(**facts), "late_payment")[0]
    expected = sum(
        p * len(set(parts(**facts, late_payment=late).person(0).counterfactual) - {"late_payment"})
        for late, p in enumerate(chance)
    ) - len(before.person(0).counterfactual)
    assert gain[0] == pytest.approx(expected)
    nothing = latent_recourse(
        person(**facts), NAMES.index("telephone"), exact_model(STORY), SUPPORT, ExactSampler(STORY)
    )
    assert nothing[0] == 0


def test_the_blanket_is_divided_at_every_state():
    random = np.random.default_rng(0)
    rows = np.where(random.random(PEOPLE.shape) < 0.5, PEOPLE, np.float32(np.nan))[:300]
    partition = explain(rows, exact_model(STORY), SUPPORT, NAMES, BLANKET)
    assert (
        partition.counterfactual.sum(axis=1) + partition.semifactual.sum(axis=1) == len(BLANKET)
    ).all()
    assert not (partition.counterfactual & partition.semifactual).any()
    assert not (partition.counterfactual & ~partition.known).any()
    for i in range(300):
        one = partition.person(i)
        assert set(one.alterfactual) == {"employment", "telephone"}
        assert all(necessity > 0 for necessity in one.counterfactual.values())


def test_a_model_outside_the_blanket_is_reported_never_called_irrelevant():
    """With savings unknown, employment stands in for it: the exact model is not aligned there."""
    partition = parts(employment=0)
    assert set(partition.person(0).violations) == {"employment"}
    shown = align(exact_model(STORY), [NAMES.index(n) for n in BLANKET.features])
    aligned = explain(person(employment=0), shown, SUPPORT, NAMES, BLANKET)
    assert not aligned.violations.any()


def test_no_blanket_means_every_feature_counts():
    partition = explain(person(savings=0, employment=1), exact_model(STORY), SUPPORT, NAMES)
    assert partition.members.all()
    assert not partition.alterfactual.any()
    assert not partition.blocked.any()


def test_bad_partitions():
    with pytest.raises(UnknownNameError, match="did you mean 'savings'"):
        explain(
            person(savings=1), exact_model(STORY), SUPPORT, NAMES, Blanket("repays", {"saving": ()})
        )
    two = explain(
        np.repeat(person(savings=1), 2, axis=0), exact_model(STORY), SUPPORT, NAMES, BLANKET
    )
    with pytest.raises(DataError, match="same people"):
        transitions(parts(savings=1), two)
    with pytest.raises(DataError, match="nothing is forgotten"):
        transitions(parts(savings=1, telephone=1), parts(savings=1))


def test_statements_about_the_story():
    table = STORY.table(2000)
    rows = table.encoder.encode_person(
        {"savings": "yes", "wage_came_late": "yes", "telephone": "no"}
    )[None]
    model = exact_model(STORY)
    partition = explain(rows, model, Support.of(table.train.X), NAMES, BLANKET)
    sentences = statements(
        sweep(rows, model, Support.of(table.train.X)), partition, table.schema, table.encoder
    )[0]
    texts = {s.feature: s.text for s in sentences}
    assert texts == {
        "employment": "“employment” made no difference here: the decision is “yes”.",
        "savings": "If “savings” were “no”, the decision would be “no”.",
        "wage_came_late": "Whatever the value of “wage came late”, the decision is still “yes”, "
        "as long as “late payment” is not known.",
        "telephone": "“telephone” made no difference here: the decision is “yes”.",
    }


def test_statements_are_true_of_the_model():
    """Every value that a sentence names is put into the row, and the model must do what the
    sentence says.
    """
    model = SubsetXGB(n_estimators=40).fit(TABLE.train.X, TABLE.train.y)
    blanket = Blanket("class", dict.fromkeys(TABLE.schema.names[:12], ()))
    rows = np.where(
        np.random.default_rng(1).random((25, 20)) < 0.6, TABLE.test.X[:25], np.float32(np.nan)
    )
    support = Support.of(TABLE.train.X)
    shown = align(model, range(12))
    partition = explain(rows, shown, support, TABLE.schema.names, blanket)
    by_person = statements(sweep(rows, shown, support), partition, TABLE.schema, TABLE.encoder)
    decided = shown.decide(shown.predict_proba(rows))
    seen = {"counterfactual": 0, "semifactual": 0, "alterfactual": 0}
    for i, sentences in enumerate(by_person):
        for sentence in sentences:
            seen[sentence.kind] += 1
            for value in sentence.values:
                row = rows[i].copy()
                row[TABLE.schema.index(sentence.feature)] = TABLE.encoder.encode_person(
                    {sentence.feature: value}
                )[TABLE.schema.index(sentence.feature)]
                then = int(shown.decide(shown.predict_proba(row[None]))[0])
                assert (then != decided[i]) == (sentence.kind == "counterfactual"), sentence
                assert TABLE.schema.outcome(TABLE.schema.classes[then]) in sentence.text
    assert min(seen.values()) > 20
