"""Whether plans make sense: further along, the good way, among people, within the rules; on the seven data sets.

Each set twice: as it is by default (directions in the model, plans that hold further and stand among people, the card's
rules), and *free*: a model and a search that know none of these, on the same card's list of what may change.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from report import table, write
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

import edfa
from edfa.advice.promise import roll_out
from edfa.data.catalog import NAMES
from edfa.predictors.base import align
from edfa.predictors.monotone import signs
from edfa.recourse import Plans, Rules, SurvivalSearch

CAP, PEOPLE, SEED, SPLITS = 10_000, 600, 0, (0, 1, 2)
PARTS = (0.25, 0.5, 1.0)
FAILS, LOST = 0.01, 0.005  # bars: plans that fail further along, AUROC lost to directions
MODELS = {
    "SubsetXGB": lambda: edfa.SubsetXGB(seed=SEED),
    "MaskedMLP": lambda: edfa.MaskedMLP(seed=SEED),
}


class Sense(NamedTuple):
    """What is wrong with some first plans; shares are of plans, of those with a number where numbers matter."""

    refused: int
    planned: float
    effort: float
    changes: float
    fails: tuple[float, ...]
    wrong_way: float
    support: int
    broken: int


NO_LIMITS: dict[str, Any] = {"takes": "", "takes_per_unit": "", "max_step": None, "max_ratio": None}


def free_card(schema: Any) -> Any:
    """The card without directions, times and rules."""
    features = tuple(replace(f, monotone=None, per_year=0.0, **NO_LIMITS) for f in schema)
    return replace(
        schema, features=features, rules=Rules(), merge={}
    )  # the labels are merged already


def fit(name: str, kind: str, free: bool) -> Any:
    data = edfa.load(name, cap=CAP, seed=SEED)
    if free:
        data = edfa.Table.from_frame(data.frame, free_card(data.schema), seed=SEED)
    searcher = SurvivalSearch(holds_further=False, min_support=0) if free else SurvivalSearch()
    return data, edfa.Advisor(
        predictor=MODELS[kind](), searcher=searcher, threshold="balanced", seed=SEED
    ).fit(data)


def first_plans(advisor: Any, rows: Any) -> Iterator[tuple[str, Any, Plans]]:
    """Everybody's state where the certificate lets them act (else at the end), and at the end, with all plans."""
    rollout = roll_out(advisor.fitted, rows)
    plans, person = rollout.plans, np.asarray(rollout.plans.people.person)
    last = np.flatnonzero(np.r_[person[1:] != person[:-1], True])
    made = advisor.fitted.certificate_for(None)
    tau = None if made is None else made.tau
    low = plans.legal & (rollout.records.signal <= (-np.inf if tau is None else tau))
    stop = last.copy()
    for row in np.flatnonzero(low)[::-1]:  # the first of a person stays
        stop[person[row] == person[last]] = row
    yield "stop", stop, plans
    yield "end", last, plans


def further(plans: Plans, which: Any, part: float) -> Any:
    """The rows of plans with every changed number moved on by a part of its way, within the training range."""
    to, own, train = (
        plans.to[which].copy(),
        plans.people.X[plans.of[which]],
        plans.people.background.rows,
    )
    schema, encoder = plans.people.schema, plans.people.encoder
    for j, feature in enumerate(schema):
        if feature.kind == "categorical":
            continue
        measured = train[:, j][~np.isin(train[:, j], encoder.columns[j].slots)]
        there = np.clip(to[:, j] + part * (to[:, j] - own[:, j]), measured.min(), measured.max())
        column = encoder.columns[j]
        if feature.kind == "ordinal":
            there = np.round(there)
        elif column.whole:  # as a person would: whole months, whole amounts
            there = (
                np.round(there.astype(float) * column.scale + column.mean) - column.mean
            ) / column.scale
        to[:, j] = np.where(np.isnan(to[:, j]), np.nan, there)
    if plans.consequences is None:
        return np.where(np.isnan(to), own, to)
    return plans.consequences.apply(np.arange(len(schema)), own, to)[0]


def judge(advisor: Any, schema: Any, plans: Plans, states: Any, least: int) -> Sense:
    """How sensible the first plans of these states are, by the reviewed card ``schema``."""
    fitted = advisor.fitted
    refused = states[plans.decision[states] != fitted.favourable]
    which = plans.first[refused][plans.legal[refused]]
    to, own = plans.to[which], plans.people.X[plans.of[which]]
    numbers = np.array([f.kind != "categorical" for f in schema])
    numeric = which[(~np.isnan(to) & numbers).any(axis=1)]
    predict = lambda part: fitted.predictor.decide(  # noqa: E731
        fitted.predictor.predict_proba(further(plans, numeric, part))
    )
    fails = tuple(
        float((predict(part) != fitted.favourable).mean()) if len(numeric) else 0.0
        for part in PARTS
    )
    signs = np.array([{"up": 1, "down": -1}.get(f.monotone or "", 0) for f in schema])
    against = (np.nan_to_num(to - own) * signs < 0).any(axis=1)
    actions = fitted.searcher.action_set(None, plans.people, fitted.favourable)
    features = np.arange(len(schema))
    end = actions.towards(features, own, to)
    crowd = fitted.searcher.training_support_
    there = crowd.count(np.fmin(to, end), np.fmax(to, end), features).people
    support = int(there.min()) if len(which) else -1
    broken = sum(
        int((~actions.allows(mask, own[[i]][:, mask], to[[i]][:, mask])).sum())
        for i, mask in enumerate(~np.isnan(own))
    )
    return Sense(
        refused=len(refused),
        planned=len(which) / max(1, len(refused)),
        effort=float(plans.effort[which].mean()) if len(which) else float("nan"),
        changes=float(plans.l0[which].mean()) if len(which) else float("nan"),
        fails=fails,
        wrong_way=float(against.mean()) if len(which) else 0.0,
        support=support - least if support >= 0 else 0,
        broken=broken,
    )


def auroc(model: Any, data: Any) -> float:
    favourable = data.schema.classes.index(data.schema.favourable)
    probabilities = model.predict_proba(data.test.X)[:, favourable]
    return float(roc_auc_score(data.test.y == favourable, probabilities))


def lost(name: str, kind: str) -> list[float]:
    """The AUROC lost to directions on each of several splits, with everything of the blanket known."""
    differences = []
    for seed in SPLITS:
        data = edfa.load(name, cap=CAP, seed=seed)
        blanket = [data.schema.index(feature) for feature in edfa.discover(data.train).features]
        free, directed = (MODELS[kind]().set_params(monotone=m) for m in (None, signs(data.schema)))
        models = [
            align(model.fit(data.train.X, data.train.y), blanket) for model in (free, directed)
        ]
        differences.append(auroc(models[0], data) - auroc(models[1], data))
    return differences


def measure(name: str, kind: str) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Two rows, at the stop and at the end; with what is held against the bars."""
    schema = edfa.load(name, cap=CAP, seed=SEED).schema
    results: dict[bool, Any] = {}
    for free in (True, False):
        start = time.perf_counter()
        data, advisor = fit(name, kind, free)
        sense = advisor.fitted.searcher.plan_filter(
            advisor.fitted.searcher.action_set(None, advisor_people(advisor))
        )
        least = sense.min_support if sense else 0
        states = first_plans(advisor, data.test.X[:PEOPLE])
        plans = {w: judge(advisor, schema, p, s, least) for w, s, p in states}
        results[free] = (auroc(advisor.fitted.predictor, data), plans, advisor)
        print(
            f"{name}, {kind}, {'free' if free else 'default'}: {time.perf_counter() - start:.0f} s",
            file=sys.stderr,
        )
    (free_auroc, free_plans, _), (own_auroc, own_plans, advisor) = results[True], results[False]
    certified = "yes" if advisor.fitted.certificate_for(None) is not None else "no"
    for where in ("stop", "end"):
        own, other = own_plans[where], free_plans[where]
        numbers = [
            f"{free_auroc:.3f} → {own_auroc:.3f}",
            certified,
            f"{other.refused} → {own.refused}",
        ]
        numbers += [
            f"{other.planned:.0%} → {own.planned:.0%}",
            f"{other.effort:.2f} → {own.effort:.2f}",
        ]
        numbers += [f"{other.changes:.2f} → {own.changes:.2f}"]
        numbers += [f"{a:.1%} → {b:.1%}" for a, b in zip(other.fails, own.fails, strict=True)]
        numbers += [
            f"{other.wrong_way:.1%} → {own.wrong_way:.1%}",
            f"{other.broken} → {own.broken}",
        ]
        bars = {
            "fails": max(own.fails),
            "wrong way": own.wrong_way,
            "support": own.support,
            "broken": own.broken,
        }
        yield [name, kind, where, *numbers], bars


def advisor_people(advisor: Any) -> Any:
    return edfa.People(advisor.fitted.train.X[:1], advisor.fitted.background)


def main() -> None:
    chosen = [a for a in sys.argv[1:] if a in NAMES] or NAMES
    rows, bars, costs = [], [], {}
    with threadpool_limits(1):
        for name in chosen:
            for kind in MODELS:
                for row, bar in measure(name, kind):
                    rows.append(row)
                    bars.append(bar)
                costs[name, kind] = lost(name, kind)
    columns = [
        "set",
        "model",
        "at the",
        "AUROC",
        "certified",
        "refused",
        "with a plan",
        "effort",
        "changes",
    ]
    columns += [f"{part:.0%} further fails" for part in PARTS] + ["wrong way", "rules broken"]
    means = {kind: max((float(np.mean(costs[n, kind])), n) for n in chosen) for kind in MODELS}
    held = [
        [
            "plans that fail 25, 50 or 100 % further, at most",
            f"{FAILS:.0%}",
            f"{max(b['fails'] for b in bars):.1%}",
        ],
        ["plans against the card's directions", "0", f"{max(b['wrong way'] for b in bars):.1%}"],
        ["support below what is asked", "0", f"{sum(b['support'] < 0 for b in bars)}"],
        ["plans that break a rule", "0", f"{sum(b['broken'] for b in bars)}"],
        *(
            [
                f"AUROC lost to directions, {kind}, mean of {len(SPLITS)} splits, at most",
                LOST,
                f"{most:.4f} ({worst})",
            ]
            for kind, (most, worst) in means.items()
        ),
    ]
    losses = [
        [name, kind, f"{np.mean(parts):+.4f}", ", ".join(f"{part:+.4f}" for part in parts)]
        for (name, kind), parts in costs.items()
    ]
    intro = (
        f"First plans of refused test people ({PEOPLE} test people a set at most, sets of at most {CAP:,} rows, seed "
        f"{SEED}, threshold at the base rate), where the certificate lets them act (at the end if nothing is "
        "certified or nobody may act earlier) and at the end. Every cell says *free → by default*: free is a model "
        "without directions and a search that asks of a plan only that it turns the decision, on the same list of "
        "what may change. *Further* moves every changed number on by a part of its way, within the training range. "
        "AUROC is that of the advisor's model with everything of the blanket known."
    )
    write(
        "plans",
        "Plans a person can follow",
        intro,
        table(columns, rows),
        table(["bar", "asked", "measured"], held),
        "What directions cost: the AUROC without them minus that with them, split by split.",
        table(["set", "model", "mean", "splits"], losses),
    )


if __name__ == "__main__":
    main()
