"""Contract checks, public for third parties: every model, policy and searcher must pass its own.

Each check raises ``AssertionError`` with what was broken, so they read well in any test runner.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.base import clone

from edfa.acquisition.loop import acquire, budget_amount
from edfa.check_wrapped import check_wrapped
from edfa.check_wrapped import require as _require
from edfa.data.rules import Rules
from edfa.explanation.necessity import sweep
from edfa.fingerprint import digest
from edfa.people import Background, People
from edfa.predictors.aligned import align
from edfa.predictors.base import by_mask
from edfa.predictors.monotone import check_directions
from edfa.recourse._search.postprocess import proper_subsets
from edfa.recourse.find import find_recourse
from edfa.recourse.searcher import SearchProblem
from edfa.typing import AnyArray, BoolArray, Float32Array, Float64Array

__all__ = ["check_policy", "check_predictor", "check_searcher", "check_settings", "check_wrapped"]


def check_predictor(make: Callable[[], Any], X: Any, y: Any, seed: int = 0) -> None:  # noqa: N803
    """Whether ``make()`` is a predictor: an unfitted model that answers from any subset.

    Checked on ``X`` (no NaN) and ``y``: probabilities add up; nothing known gives the prior; an
    unknown cell cannot leak; a batch equals one person at a time, whatever its classes; the same
    seed gives the same bits; permuted columns follow; a constant column says nothing; a shorter way
    to decide decides the same; directions, of a model that takes them, are obeyed exactly or at
    least better than without; settings are kept as scikit-learn has it, and a fingerprint tells
    fits apart; saved and loaded are equal to the bit. A model that is never learnt again
    (``refits`` is False) has its mean answer as prior, and the laws that learn it again from other
    rows are left out.
    """
    matrix, classes = np.asarray(X, dtype=np.float32), np.asarray(y)
    random = np.random.default_rng(seed)
    rows = matrix[random.permutation(len(matrix))[:40]].copy()
    masks = random.random((5, matrix.shape[1])) < 0.5
    hidden = ~masks[random.integers(0, len(masks), len(rows))]
    partial = np.where(hidden, np.float32(np.nan), rows)
    model = make().fit(matrix, classes)
    probabilities = model.predict_proba(partial)
    _require(
        probabilities.shape == (len(rows), len(model.classes_)),
        "predict_proba gives one probability a class",
    )
    _require(
        np.isfinite(probabilities).all() and (probabilities >= 0).all(),
        "probabilities are finite and not negative",
    )
    _require(np.allclose(probabilities.sum(axis=1), 1), "probabilities add up to one")
    _check_prior(model, matrix, classes)
    one_by_one = np.concatenate([model.predict_proba(row[None]) for row in partial])
    _require(
        np.allclose(probabilities, one_by_one, atol=1e-6),
        "a batch gives what one person at a time gives",
    )
    _require(
        np.array_equal(probabilities, make().fit(matrix, classes).predict_proba(partial)),
        "the same seed gives the same bits",
    )
    _check_poison(model, rows, hidden, probabilities)
    of_one_class = model.predict_proba(matrix[classes == classes[0]][:5])
    _require(
        of_one_class.shape[1] == len(model.classes_),
        "people of one class alone are answered for every class",
    )
    if model.refits:
        _check_permutation(make, matrix, classes, partial, probabilities)
        _check_constant(make, matrix, classes)
        _check_directions(make, matrix, classes)
    _check_tries(model, rows, masks[0])
    check_settings(make())
    _require(
        digest(model) == digest(make().fit(matrix, classes)),
        "the same fit has the same fingerprint",
    )
    half = np.arange(len(matrix)) % 2 == 0
    _require(
        digest(model) != digest(make().fit(matrix[half], classes[half])),
        "another fit has another fingerprint",
    )
    if model.refits and hasattr(model, "to_folder"):
        with TemporaryDirectory() as folder:
            model.to_folder(Path(folder) / "model")
            again = type(model).from_folder(Path(folder) / "model")
            _require(
                np.array_equal(probabilities, again.predict_proba(partial)),
                "saved and loaded are equal to the bit",
            )


def check_settings(part: Any) -> None:
    """Whether a part keeps scikit-learn's contract of settings; ``part`` is a predictor, a policy
    or a searcher.

    Checked: every setting is stored under its own name, as given; a clone has the same settings and
    has learnt nothing; what it prints of itself is its settings.
    """
    try:
        settings = part.get_params(deep=False)
    except AttributeError as error:
        raise AssertionError(
            f"broken: every setting is stored under its own name ({error})"
        ) from None
    copy = clone(part)
    theirs = copy.get_params(deep=False)
    _require(list(settings) == list(theirs), "a clone has the same settings")
    for name, value in settings.items():
        _require(_same_setting(value, theirs[name]), f"a clone has the same {name}")
    learnt = [
        name
        for name in vars(copy)
        if name.endswith("_") and not name.startswith("_") and vars(copy)[name]
    ]
    _require(not learnt, f"a clone has learnt nothing, not even {learnt[:1]}")
    _require(
        type(part).__name__ in repr(part) and len(repr(part)) < 2000,
        "a part prints its name and settings",
    )


def _same_setting(one: Any, other: Any) -> bool:
    if hasattr(one, "get_params"):
        return type(one) is type(other)
    return bool(digest(one) == digest(other))


def _check_prior(model: Any, matrix: Float32Array, classes: AnyArray) -> None:
    nothing = np.full((3, matrix.shape[1]), np.nan, dtype=np.float32)
    shares = np.array([(classes == c).mean() for c in model.classes_])
    prior = shares if model.refits else model.predict_proba(matrix).mean(axis=0)
    _require(
        np.allclose(model.predict_proba(nothing), prior, atol=1e-6), "nothing known gives the prior"
    )


def _check_poison(
    model: Any, rows: Float32Array, hidden: BoolArray, probabilities: Float64Array
) -> None:
    """Neither the bits of a NaN nor what stands in other people's rows may show."""
    unknown = np.where(hidden, np.float32(np.nan), rows)
    crowd = np.concatenate([unknown, rows[::-1] * np.float32(1e6)])
    _require(
        np.allclose(model.predict_proba(crowd)[: len(rows)], probabilities, atol=1e-6),
        "other rows of a batch do not matter",
    )
    bits = unknown.view(np.uint32).copy()
    bits[hidden] = 0x7FC00000 | np.arange(1, hidden.sum() + 1, dtype=np.uint32)
    _require(
        np.array_equal(model.predict_proba(bits.view(np.float32)), probabilities),
        "an unknown cell cannot leak",
    )


def _check_tries(model: Any, rows: Any, mask: Any) -> None:
    """One column at a time given another person's value."""
    known, column = rows[:, mask], np.arange(int(mask.sum())).repeat(5)
    value = np.resize(rows[:5].T[mask], len(column)).astype(np.float32)
    if not len(column) or (decisions := model.decide_tries(mask, known, column, value)) is None:
        return
    changed = np.repeat(known[:, None], len(column), axis=1)
    changed[:, np.arange(len(column)), column] = value
    decided = model.decide(model.predict_known(mask, changed.reshape(-1, known.shape[1])))
    _require(
        np.array_equal(decisions.ravel(), decided),
        "decide_tries decides what asking about every candidate value does",
    )


def _check_directions(make: Callable[[], Any], matrix: Float32Array, classes: AnyArray) -> None:
    """Directions that take turns, so that about half of them are not those of the data."""
    if "monotone" not in make().get_params(deep=False) or len(np.unique(classes)) > 2:
        return
    signs = tuple((-1) ** j for j in range(matrix.shape[1]))
    names = [str(j) for j in range(len(signs))]
    models = [
        make().set_params(monotone=directions).fit(matrix, classes) for directions in (signs, None)
    ]
    obeying, free = (check_directions(model, matrix, signs, names) for model in models)
    if models[0].obeys_directions:
        _require(
            all(f.wrong == f.largest == f.turned == 0 for f in obeying.features),
            "directions are obeyed exactly",
        )
    wrong, without = (np.mean([f.wrong for f in check.features]) for check in (obeying, free))
    _require(
        wrong < without,
        f"directions are obeyed better than without: {wrong:.3f} of steps, not {without:.3f}",
    )
    _require(digest(models[0]) != digest(models[1]), "directions show in the fingerprint")


def _check_permutation(
    make: Callable[[], Any],
    matrix: Float32Array,
    classes: AnyArray,
    partial: Float32Array,
    probabilities: Float64Array,
) -> None:
    order = np.arange(matrix.shape[1])[::-1]
    turned = make().fit(matrix[:, order], classes).predict_proba(partial[:, order])
    near = np.abs(turned - probabilities).mean()
    _require(
        near < 0.05,
        f"permuted columns follow, but for the luck of another start (mean difference {near:.3f})",
    )


def _check_constant(make: Callable[[], Any], matrix: Float32Array, classes: AnyArray) -> None:
    flat = matrix.copy()
    flat[:, 0] = 1.0
    only_flat = np.full((1, matrix.shape[1]), np.nan, dtype=np.float32)
    only_flat[0, 0] = 1.0
    probabilities = make().fit(flat, classes).predict_proba(only_flat)
    prior = np.array([(classes == c).mean() for c in np.unique(classes)])
    _require(np.allclose(probabilities, prior, atol=1e-6), "a constant column says nothing")


def check_policy(
    policy: Any, table: Any, predictor: Any, budget: float = 0.7, seed: int = 0
) -> None:
    """Whether ``policy`` keeps the contract, on people of ``table`` (a part of a Table) and a
    fitted predictor.

    Checked: nothing peeks (whatever stands in cells not asked for yet, the next question is the
    same); the budget is never exceeded; no feature is asked twice, none that is known from the
    start, forbidden or declined; a batch gives what one person at a time gives; the same seed gives
    the same run; settings are kept as scikit-learn has it.
    """
    check_settings(policy)
    rows, schema = np.asarray(table.X[:12]), table.schema
    actions: dict[str, Any] = {"reference": table.reference, "explain": False}

    def run(facts: Any, **more: Any) -> Any:
        return acquire(facts, policy, predictor, budget, seed, **(actions | more))

    whole = run(rows)
    orders = [whole.order(i) for i in range(len(rows))]
    _require(all(len(set(order)) == len(order) for order in orders), "no feature is asked twice")
    start = np.array([f.start for f in schema])
    _require(
        not any(schema[name].start for order in orders for name in order),
        "the start set is never asked for",
    )
    limit = budget_amount(budget, np.tile(schema.costs, (len(rows), 1)), start)
    _require((whole.spent <= limit[whole.who] + 1e-9).all(), "the budget is never exceeded")
    _require(
        orders == [run(rows).order(i) for i in range(len(rows))], "the same seed gives the same run"
    )
    single = [run(row[None], person=[i]).order(0) for i, row in enumerate(rows)]
    _require(orders == single, "a batch gives what one person at a time gives")
    _check_peeking(run, whole, rows, seed)
    sensitive = [f.name for f in schema if f.sensitive and not f.start]
    barred = run(rows, forbidden=sensitive)
    _require(
        not set(sensitive) & {n for _, order in barred for n in order},
        "what is forbidden is never asked",
    )
    closed = replace(whole.people(), askable=np.zeros_like(whole.known))
    _require((policy.next(closed) == -1).all(), "where nothing may be asked, nothing is")
    declines = np.random.default_rng(seed).random(rows.shape) < 0.3
    met = run(rows, declines=declines)
    _require(not (met.declined & (met.when >= 0)).any(), "what was declined stays unknown")
    _require(not (declines & ~start & (met.when > 0)).any(), "what is declined is not taken")


def _check_peeking(run: Callable[..., Any], whole: Any, rows: Float32Array, seed: int) -> None:
    """Everything not known at step k is replaced by other people's facts: up to question k + 1
    nothing may change.
    """
    others = rows[np.random.default_rng(seed).permutation(len(rows))]
    for step in (0, 1, 2, 4):
        known = (whole.when >= 0) & (whole.when <= step)
        poisoned = run(np.where(known, rows, others + np.float32(1)))
        same = [
            whole.order(i)[: step + 1] == poisoned.order(i)[: step + 1] for i in range(len(rows))
        ]
        _require(
            all(same),
            (
                f"nothing peeks: question {step + 1} depends on what is known by then and on "
                "nothing else"
            ),
        )
        probabilities = [o.probabilities[o.at(step)] for o in (whole, poisoned)]
        _require(np.array_equal(*probabilities), "nor does the model")


def check_searcher(
    make: Callable[[Any], Any],
    table: Any,
    predictor: Any,
    *,
    seed: int = 0,
    max_rows: int = 100_000,
) -> None:
    """Whether ``make(train)`` is a searcher: plans for partially known people, under any
    rules.

    Checked on the test part of ``table`` with a fitted ``predictor``: every plan is valid, minimal,
    within the card and the rules, and changes acquired features alone; nothing peeks; a batch
    gives what one person at a time gives; the same seed gives the same plans, however many share
    the work; where there is no recourse, that is said after asking the model about at most
    ``max_rows`` rows; settings are kept as scikit-learn has it, and a fingerprint tells fits apart.
    """
    random, searcher = np.random.default_rng(seed), make(table.train)
    check_settings(searcher)
    _require(
        digest(searcher) == digest(clone(searcher).fit(table.train)),
        "the same fit has the same fingerprint",
    )
    _require(
        digest(searcher) != digest(clone(searcher).fit(table.test)),
        "another fit has another fingerprint",
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
        plans = find_recourse(people, searcher, rules=rules, seed=seed)
        _check_plans(searcher, plans, rules or Rules(), seed)
        again = find_recourse(people, make(table.train), rules=rules, seed=seed, n_jobs=3)
        _require(
            np.array_equal(plans.to, again.to, equal_nan=True),
            "the same seed gives the same plans, shared or not",
        )
        _check_alone(searcher, plans, rules, seed)
        _require(
            set(plans.of.tolist()) | set(plans.reasons) == set(range(len(rows))),
            "who has no plan has a reason",
        )
    _check_unknown(searcher, people, seed)
    _check_none(searcher, people, open_, max_rows)


def _check_plans(searcher: Any, plans: Any, rules: Any, seed: int) -> None:
    """Valid, clean and minimal, each asked anew."""
    people, changed = plans.people, ~np.isnan(plans.to)
    _require(
        not (changed & np.isnan(people.X[plans.of])).any(), "only acquired features are changed"
    )
    _require(changed.any(axis=1).all(), "a plan changes something")
    decided = people.predictor.predict(plans.rows())
    _require((decided != plans.decision[plans.of]).all(), "every plan is valid under the predictor")
    _require(
        (plans.probability_after >= rules.min_probability).all(),
        "the probability asked for is reached",
    )
    if rules.max_changes:
        _require(
            (changed.sum(axis=1) <= rules.max_changes).all(),
            "no plan has more changes than allowed",
        )
    actions = searcher.action_set(rules, people)
    for mask, some in by_mask(people.X[plans.of]):
        facts, to = people.X[plans.of[some]][:, mask], plans.to[some][:, mask]
        _require(actions.allows(mask, facts, to).all(), "no rule is broken")
        asked = actions.free if searcher.uses_sweep else mask & False
        group = sweep(people.X[plans.of[some]], people.predictor, searcher.support_, asked).groups[
            0
        ]
        problem = SearchProblem(
            group, actions, people.background, None, seed, sense=searcher.sense(actions)
        )
        case = group.case[np.argsort(group.people, kind="stable")]
        plan, smaller = proper_subsets(to)
        fine = actions.fit_together(mask, facts[plan], smaller)
        fine &= searcher.keeps(
            problem, case[plan], smaller, problem.predict(problem.apply(case[plan], smaller))
        )
        _require(
            not searcher.minimal or not fine.any(),
            "no proper subset of a plan's changes is good enough",
        )


def _check_alone(searcher: Any, plans: Any, rules: Any, seed: int) -> None:
    for row in range(0, len(plans.people), 5):
        one = People(plans.people.X[[row]], plans.people.background)
        alone = find_recourse(one, searcher, rules=rules, seed=seed)
        _require(
            np.array_equal(alone.to, plans.to[plans.of == row], equal_nan=True),
            "a batch gives what one person at a time gives",
        )


def _check_unknown(searcher: Any, people: Any, seed: int) -> None:
    bits = people.X.view(np.uint32).copy()
    hidden = np.isnan(people.X)
    bits[hidden] = 0x7FC00000 | np.arange(1, hidden.sum() + 1, dtype=np.uint32)
    poisoned = replace(people, X=bits.view(np.float32))
    plans, again = (find_recourse(who, searcher, seed=seed) for who in (people, poisoned))
    _require(np.array_equal(plans.to, again.to, equal_nan=True), "an unknown cell cannot leak")


def _check_none(searcher: Any, people: Any, names: list[str], max_rows: int) -> None:
    """With a model that does not look at the only feature that may change there is no plan, and
    that is found out.
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
    _require(len(none) == 0, "a feature that the model does not look at is no recourse")
    _require(
        sum(asked) <= max_rows,
        f"no recourse is said after at most {max_rows:,} rows, not {sum(asked):,}",
    )
