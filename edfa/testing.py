"""Contract checks, public for third parties: every model, policy and searcher must pass its own.

``check_predictor``, ``check_policy`` and ``check_searcher`` are called from a test of the part;
all of them call ``check_settings``. Each check raises ``AssertionError`` with what was broken,
so they read well in any test runner. Everything drawn at random is drawn with a fixed seed.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.base import clone

from edfa.acquisition.loop import Terms, acquire, budget_amount
from edfa.check_wrapped import check_wrapped as check_wrapped
from edfa.check_wrapped import odd_gaps, require
from edfa.data.rules import Rules
from edfa.explanation.necessity import sweep
from edfa.fingerprint import digest
from edfa.people import Background, People
from edfa.predictors.base import align, by_mask
from edfa.predictors.monotone import check_directions
from edfa.recourse.find import find_recourse
from edfa.recourse.searcher import SearchProblem, proper_subsets
from edfa.typing import NAN, AnyArray, BoolArray, Float32Array, Float64Array


def check_predictor(make: Callable[[], Any], X: Any, y: Any) -> None:  # noqa: N803
    """Check that ``make()`` is a predictor: an unfitted model that answers from any subset.

    The laws are: probabilities add up; nothing known gives the prior; an unknown cell cannot
    leak; a batch equals one person at a time, whatever its classes; the same seed gives the same
    bits; permuted columns follow; a constant column says nothing; a shorter way to decide
    decides the same; directions, of a model that takes them, are obeyed exactly or at least
    better than without; settings are kept as scikit-learn has it, and a fingerprint tells fits
    apart; saved and loaded are equal to the bit. A model that is never learnt again (``refits``
    is False) has its mean answer as prior, and the laws that learn it again from other rows are
    left out.

    Parameters
    ----------
    make
        Makes an unfitted model; called several times.
    X
        Encoded rows to learn from, (people, features), without NaN.
    y
        Class codes, (people,).

    Raises
    ------
    AssertionError
        With the first law that is broken.
    """
    matrix, classes = np.asarray(X, dtype=np.float32), np.asarray(y)
    random = np.random.default_rng(0)
    rows = matrix[random.permutation(len(matrix))[:40]].copy()
    masks = random.random((5, matrix.shape[1])) < 0.5
    hidden = ~masks[random.integers(0, len(masks), len(rows))]
    partial = np.where(hidden, NAN, rows)
    model, again = (make().fit(matrix, classes) for _ in range(2))
    probabilities = model.predict_proba(partial)
    require(
        probabilities.shape == (len(rows), len(model.classes_)),
        "predict_proba gives one probability a class",
    )
    require(
        np.isfinite(probabilities).all() and (probabilities >= 0).all(),
        "probabilities are finite and not negative",
    )
    _require_near(probabilities.sum(axis=1), 1, "probabilities add up to one")
    shares = np.array([(classes == c).mean() for c in model.classes_])
    prior = shares if model.refits else model.predict_proba(matrix).mean(axis=0)
    _require_near(
        model.predict_proba(np.full_like(rows[:3], np.nan)), prior, "nothing known gives the prior"
    )
    _require_near(
        np.concatenate([model.predict_proba(row[None]) for row in partial]),
        probabilities,
        "a batch gives what one person at a time gives",
    )
    crowd = np.concatenate([partial, rows[::-1] * np.float32(1e6)])
    _require_near(
        model.predict_proba(crowd)[: len(rows)],
        probabilities,
        "other rows of a batch do not matter",
    )
    _require_same(
        model.predict_proba(odd_gaps(partial)), probabilities, "an unknown cell cannot leak"
    )
    _require_same(again.predict_proba(partial), probabilities, "the same seed gives the same bits")
    require(
        model.predict_proba(matrix[classes == classes[0]][:5]).shape[1] == len(model.classes_),
        "people of one class alone are answered for every class",
    )
    _check_tries(model, rows, masks[0])
    check_settings(make())
    half = np.arange(len(matrix)) % 2 == 0
    _check_fingerprints(model, again, make().fit(matrix[half], classes[half]))
    if not model.refits:
        return
    turned = make().fit(matrix[:, ::-1], classes).predict_proba(partial[:, ::-1])
    near = np.abs(turned - probabilities).mean()
    require(
        near < 0.05,
        f"permuted columns follow, but for the luck of another start (mean difference {near:.3f})",
    )
    flat, only_flat = matrix.copy(), np.full_like(rows[:1], np.nan)
    flat[:, 0] = only_flat[:, 0] = 1.0
    _require_near(
        make().fit(flat, classes).predict_proba(only_flat), prior, "a constant column says nothing"
    )
    _check_directions(make, matrix, classes)
    if hasattr(model, "to_folder"):
        with TemporaryDirectory() as folder:
            model.to_folder(Path(folder) / "model")
            loaded = type(model).from_folder(Path(folder) / "model")
        _require_same(
            loaded.predict_proba(partial), probabilities, "saved and loaded are equal to the bit"
        )


def check_settings(part: Any) -> None:
    """Check that a part keeps scikit-learn's contract of settings.

    The laws are: every setting is stored under its own name, as given; a clone has the same
    settings and has learnt nothing; what the part prints of itself is its settings.

    Parameters
    ----------
    part
        A predictor, a policy or a searcher, fitted or not.

    Raises
    ------
    AssertionError
        With the first law that is broken.
    """
    try:
        settings = part.get_params(deep=False)
    except AttributeError as error:
        raise AssertionError(
            f"broken: every setting is stored under its own name ({error})"
        ) from None
    copy = clone(part)
    theirs = copy.get_params(deep=False)
    require(list(settings) == list(theirs), "a clone has the same settings")
    for name, value in settings.items():
        same = (
            type(value) is type(theirs[name])
            if hasattr(value, "get_params")
            else digest(value) == digest(theirs[name])
        )
        require(same, f"a clone has the same {name}")
    learnt = [
        name
        for name, value in vars(copy).items()
        if name.endswith("_") and not name.startswith("_") and value
    ]
    require(not learnt, f"a clone has learnt nothing, not even {learnt[:1]}")
    require(
        type(part).__name__ in repr(part) and len(repr(part)) < 2000,
        "a part prints its name and settings",
    )


def _require_same(one: AnyArray, other: AnyArray, law: str) -> None:
    """Raise unless two arrays are equal to the bit, NaN in the same places."""
    require(np.array_equal(one, other, equal_nan=True), law)


def _require_near(one: Float64Array, other: Float64Array | float, law: str) -> None:
    """Raise unless probabilities are the same, but for rounding."""
    require(np.allclose(one, other, atol=1e-6), law)


def _check_fingerprints(fitted: Any, again: Any, other: Any) -> None:
    """Two fits on the same people have one fingerprint, a fit on others has another.

    Parameters
    ----------
    fitted, again
        A part that was fitted twice on the same people.
    other
        The same part, fitted on other people.
    """
    require(digest(fitted) == digest(again), "the same fit has the same fingerprint")
    require(digest(fitted) != digest(other), "another fit has another fingerprint")


def _check_tries(model: Any, rows: Any, mask: Any) -> None:
    """``decide_tries`` decides what asking the model about every candidate does.

    Parameters
    ----------
    model
        A fitted predictor; nothing is checked if its ``decide_tries`` gives None.
    rows
        Complete encoded rows, (people, features), at least five. One known column at a time is
        given the value of each of the first five people.
    mask
        Which features are known, (features,).
    """
    known, column = rows[:, mask], np.arange(int(mask.sum())).repeat(5)
    value = np.resize(rows[:5].T[mask], len(column)).astype(np.float32)
    if not len(column) or (decisions := model.decide_tries(mask, known, column, value)) is None:
        return
    changed = np.repeat(known[:, None], len(column), axis=1)
    changed[:, np.arange(len(column)), column] = value
    decided = model.decide(model.predict_known(mask, changed.reshape(-1, known.shape[1])))
    _require_same(
        decisions.ravel(), decided, "decide_tries decides what asking about every candidate does"
    )


def _check_directions(make: Callable[[], Any], matrix: Float32Array, classes: AnyArray) -> None:
    """A model that can be told directions obeys them, exactly or better than one that was not told.

    The directions take turns, so that about half of them are not those of the data. Models of
    more than two classes, and those without the setting ``monotone``, are left out.

    Parameters
    ----------
    make
        Makes an unfitted model.
    matrix, classes
        Encoded rows (people, features) and class codes (people,) to learn from.
    """
    if "monotone" not in make().get_params(deep=False) or len(np.unique(classes)) > 2:
        return
    signs = tuple((-1) ** j for j in range(matrix.shape[1]))
    names = [str(j) for j in range(len(signs))]
    models = [
        make().set_params(monotone=directions).fit(matrix, classes) for directions in (signs, None)
    ]
    obeying, free = (check_directions(model, matrix, signs, names) for model in models)
    if models[0].obeys_directions:
        require(
            all(f.wrong == f.largest == f.turned == 0 for f in obeying.features),
            "directions are obeyed exactly",
        )
    wrong, without = (np.mean([f.wrong for f in check.features]) for check in (obeying, free))
    require(
        wrong < without,
        f"directions are obeyed better than without: {wrong:.3f} of steps, not {without:.3f}",
    )
    require(digest(models[0]) != digest(models[1]), "directions show in the fingerprint")


def check_policy(policy: Any, table: Any, predictor: Any, budget: float = 0.7) -> None:
    """Check that ``policy`` keeps the contract of policies.

    The laws are: nothing peeks (whatever stands in cells not asked for yet, the next question is
    the same); the budget is never exceeded; no feature is asked twice, none that is known from
    the start, forbidden or declined; a batch gives what one person at a time gives; the same
    seed gives the same run; settings are kept as scikit-learn has it.

    Parameters
    ----------
    policy
        The policy, fitted if it learns anything.
    table
        A part of a ``Table``, such as ``table.test``; its first twelve people are asked.
    predictor
        A model that is fitted on the same features.
    budget
        What may be spent on a person, as for ``acquire``.

    Raises
    ------
    AssertionError
        With the first law that is broken.
    """
    check_settings(policy)
    rows, schema, random = np.asarray(table.X[:12]), table.schema, np.random.default_rng(0)

    def run(facts: Float32Array, **terms: Any) -> Any:
        return acquire(
            facts,
            policy,
            predictor,
            budget,
            reference=table.reference,
            terms=Terms(**terms),
            explain=False,
        )

    whole, again = run(rows), run(rows)
    orders = [whole.order(i) for i in range(len(rows))]
    require(all(len(set(order)) == len(order) for order in orders), "no feature is asked twice")
    start = whole.background.start
    require(
        not any(schema[name].start for order in orders for name in order),
        "the start set is never asked for",
    )
    limit = budget_amount(budget, np.tile(schema.costs, (len(rows), 1)), start)
    require((whole.spent <= limit[whole.who] + 1e-9).all(), "the budget is never exceeded")
    require(list(whole) == list(again), "the same seed gives the same run")
    single = [run(row[None], person=[i]).order(0) for i, row in enumerate(rows)]
    require(orders == single, "a batch gives what one person at a time gives")
    # Everything not known at a step is replaced by other people's facts: up to the next question
    # nothing may change.
    others = rows[random.permutation(len(rows))] + np.float32(1)
    for step in (0, 1, 2, 4):
        poisoned = run(np.where((whole.when >= 0) & (whole.when <= step), rows, others))
        require(
            all(
                order[: step + 1] == poisoned.order(i)[: step + 1] for i, order in enumerate(orders)
            ),
            f"nothing peeks: question {step + 1} depends on what is known by then and on nothing "
            "else",
        )
        probabilities = [o.probabilities[o.at(step)] for o in (whole, poisoned)]
        require(np.array_equal(*probabilities), "nor does the model")
    sensitive = [f.name for f in schema if f.sensitive and not f.start]
    barred = run(rows, forbidden=sensitive)
    require(
        not set(sensitive) & {n for _, order in barred for n in order},
        "what is forbidden is never asked",
    )
    closed = replace(whole.people(), askable=np.zeros_like(whole.known))
    require((policy.next(closed) == -1).all(), "where nothing may be asked, nothing is")
    declines = np.random.default_rng(0).random(rows.shape) < 0.3
    met = run(rows, declines=declines)
    require(not (met.declined & (met.when >= 0)).any(), "what was declined stays unknown")
    require(not (declines & ~start & (met.when > 0)).any(), "what is declined is not taken")


def check_searcher(
    make: Callable[[Any], Any],
    table: Any,
    predictor: Any,
    *,
    max_rows: int = 100_000,
) -> None:
    """Check that ``make(train)`` is a searcher: plans for partially known people, under any rules.

    The laws are: every plan is valid, minimal, within the card and the rules, and changes
    acquired features alone; nothing peeks; a batch gives what one person at a time gives; the
    same seed gives the same plans, however many threads share the work; where there is no
    recourse, that is said after asking the model about a bounded number of rows; settings are
    kept as scikit-learn has it, and a fingerprint tells fits apart.

    Parameters
    ----------
    make
        Makes a fitted searcher from the training part of a table.
    table
        A whole ``Table``; 24 people of its test part are searched for plans.
    predictor
        A model that is fitted on its training part.
    max_rows
        How many rows the model may be asked about until it is found that there is no recourse.

    Raises
    ------
    AssertionError
        With the first law that is broken.
    """
    random, searcher = np.random.default_rng(0), make(table.train)
    check_settings(searcher)
    _check_fingerprints(
        searcher, *(clone(searcher).fit(part) for part in (table.train, table.test))
    )
    rows = table.test.X[random.permutation(len(table.test))[:24]].copy()
    masks = random.random((4, rows.shape[1])) < 0.6
    masks[0] = True
    rows[~masks[random.integers(0, len(masks), len(rows))]] = np.nan
    people = People(rows, Background.of(table.train, predictor))
    open_ = [f.name for f in table.schema if f.actionable]
    tight = Rules(
        locked=(open_[0],), max_changes=2, together=((open_[1], open_[-1]),), min_probability=0.55
    )
    for rules in (None, Rules(reading="paper"), tight):
        plans = find_recourse(people, searcher, rules=rules)
        _check_plans(searcher, plans, rules or Rules())
        again = find_recourse(people, make(table.train), rules=rules, n_jobs=3)
        _require_same(plans.to, again.to, "the same seed gives the same plans, shared or not")
        for row in range(0, len(people), 5):
            one = People(rows[[row]], people.background)
            _require_same(
                find_recourse(one, searcher, rules=rules).to,
                plans.to[plans.of == row],
                "a batch gives what one person at a time gives",
            )
        require(
            set(plans.of.tolist()) | set(plans.reasons) == set(range(len(rows))),
            "who has no plan has a reason",
        )
    plans, poisoned = (
        find_recourse(replace(people, X=X), searcher) for X in (rows, odd_gaps(rows))
    )
    _require_same(plans.to, poisoned.to, "an unknown cell cannot leak")
    _check_none(searcher, people, open_, max_rows)


def _check_plans(searcher: Any, plans: Any, rules: Any) -> None:
    """Plans are valid, keep to the rules and are minimal; the model is asked anew about each.

    Parameters
    ----------
    searcher
        The searcher that found them.
    plans
        A batch of ``Plans``.
    rules
        The rules that they were found under.
    """
    people, changed = plans.people, ~np.isnan(plans.to)
    require(
        not (changed & np.isnan(people.X[plans.of])).any(), "only acquired features are changed"
    )
    require(changed.any(axis=1).all(), "a plan changes something")
    decided = people.predictor.predict(plans.rows())
    require((decided != plans.decision[plans.of]).all(), "every plan is valid under the predictor")
    require(
        (plans.probability_after >= rules.min_probability).all(),
        "the probability asked for is reached",
    )
    if rules.max_changes:
        require(
            (changed.sum(axis=1) <= rules.max_changes).all(),
            "no plan has more changes than allowed",
        )
    actions = searcher.action_set(rules, people)
    for mask, some in by_mask(people.X[plans.of]):
        facts, to = people.X[plans.of[some]][:, mask], plans.to[some][:, mask]
        require(actions.allows(mask, facts, to).all(), "no rule is broken")
        asked = actions.free if searcher.uses_sweep else mask & False
        group = sweep(people.X[plans.of[some]], people.predictor, searcher.support_, asked).groups[
            0
        ]
        problem = SearchProblem(
            group, actions, people.background, None, plan_filter=searcher.plan_filter(actions)
        )
        case = group.case[np.argsort(group.people, kind="stable")]
        plan, smaller = proper_subsets(to)
        probabilities = problem.predict_changes(case[plan], smaller)
        fine = searcher.keeps(problem, case[plan], smaller, probabilities)
        require(
            not searcher.minimal or not fine.any(),
            "no proper subset of a plan's changes is good enough",
        )


def _check_none(searcher: Any, people: Any, names: Sequence[str], max_rows: int) -> None:
    """With a model that does not look at the only feature that may change there is no plan, and
    that is found out.

    Parameters
    ----------
    searcher
        The searcher.
    people
        A batch of people and their model.
    names
        Features that can change; the first is the only one that may, and is hidden from the
        model.
    max_rows
        How many rows the model may be asked about.
    """
    blind = [j for j, name in enumerate(people.schema.names) if name != names[0]]
    model: Any = align(people.predictor, blind)
    answer, asked = model._answer, []

    def count(mask: BoolArray, known: Float32Array) -> Float64Array:
        asked.append(len(known))
        probabilities: Float64Array = answer(mask, known)
        return probabilities

    model._answer = count
    view = replace(people, background=replace(people.background, model=model))
    none = find_recourse(view, searcher, rules=Rules(only=(names[0],)))
    require(len(none) == 0, "a feature that the model does not look at is no recourse")
    require(
        sum(asked) <= max_rows,
        f"no recourse is said after at most {max_rows:,} rows, not {sum(asked):,}",
    )
