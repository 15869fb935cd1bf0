"""The promise to people who are told to act: what it costs until then, who is let down, and by whom; seven data sets.

This is the promise of `loss="let_down"`; `endings.py` measures that of the three endings. Each case (a set and a seed)
is one process and one JSON file in out/promise; what is there is not done again. `python benchmarks/promise.py run JOBS`
fills the folder on a larger machine; `./run bench promise` takes it up, measures the speed here, and writes the tables.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from peers.robust_recourse import beta_rce, robx, standard_deviations
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import edfa
from edfa.advice.fitted import FittedAdvisor
from edfa.advice.promise import Rollout, choose_certifier, dry_run, judge_plans, roll_out
from edfa.people import People
from edfa.predictors.base import align
from edfa.predictors.committee import Committee
from edfa.recourse import find_recourse

FOLDER = Path(__file__).parents[1] / "out" / "promise"
SETS = ("german", "adult", "heloc", "taiwan", "acs_income", "gmsc", "diabetes130")
SEEDS, ALPHAS, DELTA, CAP = (0, 1, 2), (0.1, 0.2), 0.05, 10_000
REFERENCES = ("trajectory_end", "all_features", "retrained")
SAME_KIND = 8  # held-out judges of the advisor's kind
Judge = Callable[[Any], Any]
"""Whether complete encoded rows (n, features) get the favourable decision, (n,)."""


def held_out_judges(table: edfa.Table, fitted: FittedAdvisor, seed: int) -> dict[str, list[Judge]]:
    """Models learnt from other rows: half of the training people, and all calibration people."""
    train, calibration, random = table.train, table.calibration, np.random.default_rng(seed + 77)
    favourable, share = fitted.favourable, float((train.y == fitted.favourable).mean())
    visible = np.flatnonzero(fitted.background.visible).tolist()
    kind = clone(fitted.model).set_params(mode="per_subset")

    def others() -> tuple[Any, Any]:
        half = random.permutation(len(train))[: len(train) // 2]
        return np.concatenate([train.X[half], calibration.X]), np.concatenate(
            [train.y[half], calibration.y]
        )

    judges: dict[str, list[Judge]] = {"same kind": []}
    for number in range(SAME_KIND):
        model = align(clone(kind).set_params(seed=number).fit(*others()), visible)
        judges["same kind"].append(lambda X, m=model: m.decide(m.predict_proba(X)) == favourable)  # type: ignore[misc]
    categorical = [j for j, feature in enumerate(table.schema) if feature.kind == "categorical"]
    numbers = [j for j in range(len(table.schema)) if j not in categorical]
    encoded = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", min_frequency=10), categorical),
        (StandardScaler(), numbers),
    )
    peers = {
        "HGB": HistGradientBoostingClassifier(max_iter=100, random_state=seed),
        "RF": RandomForestClassifier(100, min_samples_leaf=5, random_state=seed),
        "LR": make_pipeline(encoded, LogisticRegression(max_iter=300)),
    }
    for name, model in peers.items():
        X, y = others()
        model.fit(X, y == favourable)
        judges[name] = [lambda X, m=model: m.predict_proba(X)[:, 1] >= share]  # type: ignore[misc]
    return judges


def validity(judges: dict[str, list[Judge]], own: Any, followed: Any) -> dict[str, list[float]]:
    """For each kind of judge: the share of plans that work, and of those of people whom the judge refuses without."""
    figures = {}
    for name, some in judges.items():
        if not len(own):
            continue
        works, granted = (np.array([judge(rows) for judge in some]) for rows in (followed, own))
        refused = ~granted
        among = float(works[refused].mean()) if refused.any() else float("nan")
        figures[name] = [float(works.mean()), among]
    return figures


def complete_rows(rollout: Rollout, X: Any, row: Any) -> tuple[Any, Any]:
    """The complete facts of the people of some rows of a rollout, and the same with the first plan followed."""
    own = X[
        np.searchsorted(np.unique(rollout.plans.people.person), rollout.plans.people.person[row])
    ]
    return own, rollout.plans.make_changes(rollout.plans.first[row], own)


def certificates(
    recipe: str,
    fitted: FittedAdvisor,
    parts: dict[str, Any],
    references: tuple[str, ...],
    judges: Any,
    seed: int,
) -> Iterator[dict[str, Any]]:
    """A row for each reference and alpha: the certificate, and what its rule does to test people."""
    rollouts = {name: roll_out(fitted, X, n_jobs=1) for name, X in parts.items()}
    dry = dry_run(fitted, seed, 1)
    test, X = rollouts["test"], parts["test"]
    last = test.trajectory.last
    refused = test.trajectory.decision[last] != fitted.favourable
    ends = last[refused & test.plans.legal[last]]
    shared = {
        "recipe": recipe,
        "refused": float(refused.mean()),
        "with_plan": float(test.plans.legal[last][refused].mean()),
        "at_end": validity(judges, *complete_rows(test, X, ends)),
        "end_changes": float(test.plans.l0[test.plans.first[ends]].mean()),
        "end_effort": float(test.plans.effort[test.plans.first[ends]].mean()),
    }
    if test.plans.survival is not None:
        shared["end_survival"] = float(test.plans.survival[test.plans.first[ends]].mean())
    for reference in references:
        promise = replace(fitted.promise, reference=reference, delta=DELTA)
        held = replace(fitted, promise=promise)
        records = {
            name: judge_plans(held, rollouts[name].plans, parts[name])["act"] for name in parts
        }
        for alpha in ALPHAS:
            ending = replace(promise.ending, alpha=alpha, target="early")
            tried, n = dry[reference]["act"], len(parts["calibration"])
            try:
                certifier = choose_certifier(held, ending, tried, n, promise.ceiling)
            except edfa.errors.DataError:
                yield shared | {
                    "reference": reference,
                    "alpha": alpha,
                    "status": "nobody acts early",
                }
                continue
            made = certifier.certificate_for(records["calibration"])
            row = shared | {
                "reference": reference,
                "alpha": alpha,
                "status": made.status,
                "tau": made.tau,
            }
            row |= {"n": made.n, "risk": made.risk, "bound": made.bound, "n_more": made.n_more}
            if made.certified:
                row |= who_acts(made, records["test"], test, X, judges)
            yield row


def who_acts(made: Any, records: Any, test: Rollout, X: Any, judges: Any) -> dict[str, Any]:
    """What becomes of test people whom a certified rule tells to act."""
    last, stops = test.trajectory.last, made.stop(records)
    row = (test.trajectory.at(0) + np.maximum(stops.step, 0))[stops.triggered]
    early = ~np.isin(row, last)
    planned = np.add.reduceat(test.plans.legal, np.append(0, last[:-1] + 1)) > 0
    spent = test.trajectory.spent[last].copy()
    full = float(spent[planned].mean())
    spent[stops.triggered] = test.trajectory.spent[row]
    plan = test.plans.first[row]
    return {
        "cost": float(spent[planned].mean()),
        "full_cost": full,
        "early": float(early.sum() / planned.sum()),
        "acting": float(len(row) / planned.sum()),
        "n_early": int(early.sum()),
        "n_last": int((~early).sum()),
        "let_down": _mean(records.loss[row][early]),
        "let_down_last": _mean(records.loss[row][~early]),
        "let_down_all": _mean(records.loss[row]),
        "wasted": _mean(records.wasted[row]),
        "changes": _mean(test.plans.l0[plan]),
        "effort": _mean(test.plans.effort[plan]),
        "at_stop": validity(judges, *complete_rows(test, X, row)),
    }


def _mean(values: Any) -> float | None:
    return float(np.mean(values)) if len(values) else None


def robust_peers(fitted: FittedAdvisor, X: Any, judges: Any, seed: int) -> list[dict[str, Any]]:
    """Complete refused people: nearest plans, RobX and BetaRCE from them, and ours; who judges them well."""
    train, favourable, predictor = fitted.train, fitted.favourable, fitted.predictor
    people = People(X, fitted.background)
    X = X[people.decision != favourable][:300]
    people = People(X, fitted.background)
    scale = standard_deviations(train.X)
    categorical = np.array([feature.kind == "categorical" for feature in train.schema])
    ways: dict[str, Any] = {}
    for name, searcher in (
        ("nearest", edfa.Nearest().fit(train)),
        ("edfa, committee", fitted.searcher),
    ):
        plans = find_recourse(
            people, searcher, rules=fitted.operator_rules, desired_class=favourable, k=1
        )
        rows = np.full(X.shape, np.nan, dtype=np.float32)
        rows[plans.legal] = plans.make_changes(plans.first[plans.legal], X[plans.legal])
        ways[name] = rows
    base = ways["nearest"]
    committee = Committee.of(train.X, train.y, predictor, 32, seed=seed + 5)
    needed = 0.5 if fitted.threshold is None else fitted.threshold
    ways["RobX"] = robx(
        X,
        base,
        predictor,
        train.X,
        favourable,
        tau=(needed + 1) / 2,
        K=300,
        categorical=categorical,
        seed=seed,
    )
    limits = (train.X.min(axis=0), train.X.max(axis=0))
    ways["BetaRCE"] = beta_rce(
        X,
        base,
        predictor,
        committee,
        favourable,
        delta=0.9,
        scale=scale,
        categorical=categorical,
        bounds=limits,
        seed=seed,
    )
    unseen = ~fitted.background.visible
    rows = []
    for name, followed in ways.items():
        there = ~np.isnan(followed).any(axis=1)
        followed = np.where(unseen, X, followed)[there]
        changed = followed != X[there]
        rows.append(
            {
                "way": name,
                "coverage": float(there.mean()),
                "changes": _mean(changed.sum(axis=1)),
                "distance": _mean(np.sqrt((((followed - X[there]) / scale) ** 2).sum(axis=1))),
                "judged": validity(judges, X[there], followed),
            }
        )
    return rows


def case(name: str, seed: int) -> dict[str, Any]:
    """Everything about one set and seed."""
    table = edfa.load(name, cap=CAP, seed=seed)
    parts = {"calibration": table.calibration.X, "test": table.test.X}
    common: dict[str, Any] = {
        "threshold": "balanced",
        "seed": seed,
        "delta": DELTA,
        "loss": "let_down",
    }
    ours = edfa.Advisor(reference="retrained", **common).fit(table, n_jobs=1).fitted
    judges = held_out_judges(table, ours, seed)
    rows = list(certificates("edfa", ours, parts, ("trajectory_end", "retrained"), judges, seed))
    everything = edfa.Advisor(reference="all_features", **common).fit(table, n_jobs=1).fitted
    rows += certificates("edfa", everything, parts, ("all_features",), judges, seed)
    alone = edfa.Advisor(reference="retrained", committee=0, **common).fit(table, n_jobs=1).fitted
    rows += certificates("survival, no committee", alone, parts, REFERENCES, judges, seed)
    nearest = (
        edfa.Advisor(reference="retrained", searcher="nearest", **common)
        .fit(table, n_jobs=1)
        .fitted
    )
    rows += certificates("nearest", nearest, parts, REFERENCES, judges, seed)
    chosen = edfa.Advisor(**common).fit(table, n_jobs=1)
    default = {"reference": chosen.fitted.promise.reference, "status": chosen.certificate.status}
    default |= {"evaluation": json.loads(chosen.evaluation_.to_json())}
    peers = robust_peers(ours, parts["test"], judges, seed)
    return {"set": name, "seed": seed, "rows": rows, "default": default, "peers": peers}


def run(jobs: int) -> None:
    """Do what is not there yet, some cases at a time."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    open_ = [
        (name, seed)
        for name in SETS
        for seed in SEEDS
        if not (FOLDER / f"{name}_{seed}.json").is_file()
    ]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        cases = {pool.submit(case, *which): which for which in open_}
        for done in as_completed(cases):
            name, seed = cases[done]
            try:
                text = json.dumps(done.result())
            except Exception as error:
                print(f"{name} {seed}: {type(error).__name__}: {error}", file=sys.stderr)
                continue
            (FOLDER / f"{name}_{seed}.json").write_text(text, encoding="utf-8")
            print(name, seed, flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if sys.argv[1:2] == ["run"]:
        run(int(sys.argv[2]))
    else:
        from promise_report import report

        run(2)
        report(FOLDER)
