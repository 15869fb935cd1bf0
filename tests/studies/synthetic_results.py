"""Results that look like a study's, drawn from a seed: every payload table in its layout, without a
cell being run.
"""

import hashlib
from itertools import product

import numpy as np
import pandas as pd

SETS = {  # features, blanket, start
    "german": (20, 5, 3),
    "adult": (13, 7, 3),
    "heloc": (22, 8, 2),
    "taiwan": (23, 7, 5),
    "acs_income": (10, 6, 3),
    "gmsc": (10, 4, 2),
    "diabetes130": (39, 10, 4),
}
POLICIES = (
    "edfa survival dime eddi gsmrl greedy random edfa-random edfa-no-pc-priority edfa-structural"
).split()
SEARCHERS = "nearest generative dice nice probe".split()
LEVEL = {
    "edfa": 1.0,
    "edfa-no-pc-priority": 0.99,
    "edfa-structural": 1.01,
    "edfa-random": 0.8,
    "survival": 1.1,
}
LABELS = "data predictor blanket policy searcher seed reading promise cell".split()


class Synthetic:
    """An object with ``frame(measure, table)`` and ``done()``, as a store has them."""

    def __init__(self, rows):
        self.rows = rows  # {(measure, table): list of dicts}

    def frame(self, measure, table, keys=None):
        frame = pd.DataFrame(self.rows.get((measure, table), []))
        if frame.empty:
            return pd.DataFrame(columns=LABELS)
        return frame[frame["cell"].isin(keys)] if keys is not None else frame

    def done(self):
        return {row["cell"] for rows in self.rows.values() for row in rows}

    def without(self, **labels):
        """The same without the rows that have all these labels."""
        kept = {
            key: [row for row in rows if any(row[name] != value for name, value in labels.items())]
            for key, rows in self.rows.items()
        }
        return Synthetic(kept)


def labels(
    measure,
    data,
    predictor="xgb",
    blanket="eamb",
    policy="edfa",
    searcher="nearest",
    seed=0,
    promise=None,
):
    """The label columns of a cell; its key follows from them."""
    values = {
        "data": data,
        "predictor": predictor,
        "blanket": blanket,
        "policy": policy,
        "searcher": searcher,
    }
    values |= {"seed": seed, "reading": "paper", "promise": promise}
    return values | {"cell": hashlib.sha256(f"{measure}{values}".encode()).hexdigest()[:16]}


def synthetic_results(sets=tuple(SETS), predictors=("xgb", "ftt"), seeds=3):
    """A whole study's results for these sets."""
    rows = {}

    def add(measure, table, label, values):
        rows.setdefault((measure, table), []).append(label | values)

    for data in sets:
        _sets(add, data)
        _examples(add, data)
        for predictor, seed in product(predictors, range(seeds)):
            for label in _growth_labels(data, predictor, seed):
                _growth(add, label)
            for promise, searcher in product(("paper", "advisor"), SEARCHERS):
                _promise(
                    add,
                    labels(
                        "promise", data, predictor, searcher=searcher, seed=seed, promise=promise
                    ),
                )
    for data, predictor in [("adult", "bn"), ("german", "bn"), ("gmsc", "xgb-balanced")]:
        for seed in range(seeds if data in sets else 0):
            _growth(add, labels("growth", data, predictor, seed=seed))
    return Synthetic(rows)


def _growth_labels(data, predictor, seed):
    """EDFA under three blankets, all policies under one, EDFA with another searcher."""
    yield from (
        labels("growth", data, predictor, blanket, seed=seed)
        for blanket in ("eamb", "hiton-mb", "bamb")
    )
    yield from (
        labels("growth", data, predictor, policy=policy, seed=seed) for policy in POLICIES[1:]
    )
    yield labels("growth", data, predictor, searcher="generative", seed=seed)


def _random(label):
    return np.random.default_rng(int(label["cell"], 16))


def _sets(add, data):
    features, size, start = SETS[data]
    split = {
        "rows": 5000,
        "train": 3000,
        "calibration": 1000,
        "test": 1000,
        "features": features,
        "start": start,
    }
    label = labels("sets", data, "-", policy="-", searcher="-")
    more = {"sensitive": 2, "target": "y_1", "favourable": "good", "classes": 2, "base_rate": 0.7}
    add("sets", "set", label, split | more)
    for i, blanket in enumerate(("eamb", "hiton-mb", "bamb")):
        names = [f"x{j}" for j in range(size + i)]
        label = labels("sets", data, "-", blanket, "-", "-")
        values = {
            "size": size + i,
            "pc": size - 1,
            "spouses": i + 1,
            "features": names,
            "units": size - 1,
        }
        add("sets", "blanket", label, values)


def _shape(label, cost):
    """Measures at a share of the cost."""
    random, policy, data = _random(label), label["policy"], label["data"]
    features, size, _ = SETS[data]
    own = policy.startswith("edfa") or policy == "survival"
    level = LEVEL.get(policy, 1.6 + random.normal(0, 0.1)) * (0.05 if data == "gmsc" and own else 1)
    noise = random.normal(0, 0.03, len(cost))
    recourse = np.maximum(0, 4 * level * cost ** (0.7 if own else 1.2) + noise * 4)
    worse = 0.05 if policy == "eddi" else 0.01 if policy == "edfa-random" else 0
    return {
        "cost": cost,
        "recourse": recourse,
        "any_recourse": np.minimum(1, recourse / 3),
        "semifactual": np.maximum(0, size * (1 - 0.7 * cost) + noise),
        "accuracy": 0.72 + 0.1 * cost**0.5 - worse + noise / 5,
        "active": np.clip(0.7 * cost + noise, 0, 1),
        "features": cost * features,
        "outside": np.zeros(len(cost)) if own else cost * (features - size),
    }


def _growth(add, label):
    random, policy = _random(label), label["policy"]
    features, size, start = SETS[label["data"]]
    own = policy.startswith("edfa") or policy == "survival"
    steps = size if own else features - start
    reach = (size / features + 0.1) if own else 0.9
    measures = _shape(label, np.linspace(0, reach, steps + 1))
    for k in range(steps + 1):
        add(
            "growth",
            "step",
            label,
            {"step": k, "people": 100} | {m: float(v[k]) for m, v in measures.items()},
        )
    grid = np.round(np.linspace(0, 1, 21), 2)
    equal = _shape(label, np.minimum(grid, reach)) | {"cost": grid}
    for k in range(len(grid)):
        add("growth", "cost", label, {m: float(v[k]) for m, v in equal.items()})
    last = {m: float(v[-1]) for m, v in measures.items()}
    first = {
        "first_cost": float(random.uniform(0.05, 0.4)),
        "first_share": 0.8,
        "base_rate": 0.7,
        "people": 100,
    }
    sizes = {"blanket_size": size, "n_features": features, "n_start": start}
    acquired = {
        "features": (size - 1 if own else features - start - 1)
        + float(random.uniform(0, 0.4)) * (not own)
    }
    add("growth", "end", label, last | first | sizes | acquired)
    quality = {
        "plans": 900,
        "l0": 1.3 if own else 2.1,
        "l2": 0.2,
        "heom": 0.4,
        "effort": 2.0,
        "plausible": 0.85,
    }
    quality = {name: value * float(random.uniform(0.95, 1.05)) for name, value in quality.items()}
    rates = {
        "plausible_real": 0.95,
        "plausible_shuffled": 0.5,
        "lift": float(random.normal(0.1, 0.05)),
    }
    add("growth", "quality", label, quality | rates | {"on_blanket": 1.0 if own else 0.4})
    for i in range(size - 1):
        add("growth", "unit", label, {"head": f"x{i}", "spouses": ["x9"] if i == 0 else []})


def _promise(add, label):
    random = _random(label)
    n = int(random.integers(150, 1000))
    strictest = float(random.uniform(0.02, 0.35))
    for alpha in (0.2, 0.3):
        for method in ("paper", "cp", "wsr"):
            good = strictest + 0.06 < alpha
            status = (
                "certified"
                if good
                else "risk_limited"
                if strictest > alpha + 0.02
                else "data_limited"
            )
            risk, cost = (alpha - 0.04, 0.35 + strictest) if good else (None, None)
            values = {
                "alpha": alpha,
                "method": method,
                "status": status,
                "zone": status,
                "tau": 0.1 if good else None,
            }
            values |= {
                "n": n,
                "people": 1000,
                "risk": risk,
                "upper": alpha - 0.005 if good else None,
                "cost": cost,
            }
            values |= {
                "full_cost": 0.85,
                "early": 0.6,
                "strictest_risk": strictest,
                "floor": 18,
                "n_first": 80,
            }
            values |= {
                "n_stable": 90,
                "n_closed": 150,
                "test_n": n,
                "test_cost": cost,
                "test_early": 0.6,
            }
            add(
                "promise",
                "certificate",
                label,
                values | {"test_risk": alpha - 0.05 if good else strictest},
            )
            for rule, at, valid in (
                ("first", 0.15, 0.6),
                ("safe", cost or 0.85, 0.82),
                ("last", 0.85, 0.97),
            ):
                valid = min(1.0, valid + 0.05 - strictest / 3)
                more = {
                    "rule": rule,
                    "cost": at + strictest / 5,
                    "valid": valid,
                    "lower": valid - 0.04,
                    "n": n,
                }
                more |= {"test_valid": valid - 0.01, "test_cost": at, "test_n": n}
                add("promise", "rule", label, {"alpha": alpha, "method": method} | more)
            for tau in (0.05, 0.1, 0.2):
                add(
                    "promise",
                    "curve",
                    label,
                    {"alpha": alpha, "method": method, "tau": tau, "cost": 1 - tau},
                )
            for group in ("female", "male"):
                values = {
                    "alpha": alpha,
                    "method": method,
                    "feature": "sex",
                    "group": group,
                    "n": n // 2,
                }
                values |= {
                    "status": status,
                    "risk": risk,
                    "upper": alpha,
                    "test_n": n // 2,
                    "test_risk": alpha - 0.05,
                }
                add("promise", "group", label, values)


def _examples(add, data):
    label = labels("examples", data)
    known = ["age: 39 years", "education: HS-grad", "hours worked in a week: 40"]
    words = {
        "known": known,
        "asked": "kind of employer",
        "asked_value": "self-employed, not incorporated",
    }
    words |= {
        "role": "spouse",
        "decision": "<=50K",
        "feature": "education",
        "from": "HS-grad",
        "to": "Bachelors",
    }
    words |= {"before": "No change of what is known turns the decision.", "reached": ">50K"}
    words |= {"after": "Change education from HS-grad to Bachelors and the decision becomes >50K."}
    for person in (3, 7):
        add("examples", "transition", label, {"person": person, "step": 2, "cost": 0.2} | words)
    _, size, _ = SETS[data]
    for policy, outside in (("edfa", 0), ("dime", 4), ("eddi", 2)):
        asked = [f"fact number {i}" for i in range(size + outside)]
        plan = (
            "increase capital gain from 0 to 7,000; increase capital loss from 0 to 1,900"
            if outside
            else "raise x"
        )
        values = {
            "person": 3,
            "steps": len(asked),
            "outside": outside,
            "cost": 0.3,
            "decision": "<=50K",
            "plan": plan,
        }
        values |= {
            "reached": ">50K",
            "changes": 2,
            "outside_changes": int(outside > 0),
            "asked": asked,
        }
        add("examples", "person", labels("examples", data, policy=policy), values)
