"""The tables of docs/results/promise.md, from the cases that benchmarks/promise.py has computed."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from report import best, table, write
from scipy.stats import binom

import edfa
from edfa.advice.batch import advise

ALPHAS, SENSIBLE = (0.1, 0.2), 0.5  # the share of refused people whom a sensible card leaves a plan
NAMES = {"trajectory_end": "blanket", "all_features": "all features", "retrained": "retrained"}
RECIPES = ("edfa", "survival, no committee", "nearest")
STEP_BAR, FILE_BAR = 3, 4
INTERVIEWS = 12


class Cases:
    """The cases in a folder, and what to look up in them."""

    def __init__(self, folder: Path) -> None:
        self.cases = [
            json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*_*.json"))
        ]
        order = list(dict.fromkeys(case["set"] for case in self.cases))
        self.sets = sorted(order, key=lambda name: (-self.planned(name), name))

    def of(self, name: str) -> list[dict[str, Any]]:
        return [case for case in self.cases if case["set"] == name]

    def rows(self, name: str, recipe: str, reference: str, alpha: float) -> list[dict[str, Any]]:
        return [
            row
            for case in self.of(name)
            for row in case["rows"]
            if (row["recipe"], row["reference"], row["alpha"]) == (recipe, reference, alpha)
        ]

    def planned(self, name: str) -> float:
        """The share of refused people who have a plan at the end, mean over the seeds."""
        return float(np.mean([case["rows"][0]["with_plan"] for case in self.of(name)]))

    def sensible(self) -> list[str]:
        return [name for name in self.sets if self.planned(name) >= SENSIBLE]

    def cost(self, name: str, recipe: str, reference: str, alpha: float) -> float:
        """The mean cost; without a certificate people are asked everything."""
        rows = self.rows(name, recipe, reference, alpha)
        full = np.mean(
            [
                row["full_cost"]
                for case in self.of(name)
                for row in case["rows"]
                if "full_cost" in row
            ]
        )
        return float(np.mean([row.get("cost", full) for row in rows]))

    def full(self, name: str) -> float:
        costs = [
            row["full_cost"] for case in self.of(name) for row in case["rows"] if "full_cost" in row
        ]
        return float(np.mean(costs)) if costs else float("nan")


def certified(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["status"] == "certified"]


def mean(rows: list[dict[str, Any]], name: str) -> float:
    values = [row[name] for row in rows if row.get(name) is not None]
    return float(np.mean(values)) if values else float("nan")


def show(value: float, digits: int = 2) -> str:
    return "" if np.isnan(value) else f"{value:.{digits}f}"


def headline(cases: Cases) -> str:
    """What the promise costs and does, by set and reference, at both alphas."""
    rows = []
    for name in cases.sets:
        for reference, words in NAMES.items():
            both = [certified(cases.rows(name, "edfa", reference, alpha)) for alpha in ALPHAS]
            pair = lambda make: " · ".join(  # noqa: E731
                make(some, alpha)
                for some, alpha in zip(both, ALPHAS, strict=True)  # noqa: B023
            )
            of = len(cases.of(name))
            rows.append(
                [
                    name,
                    f"{cases.planned(name):.0%}",
                    words,
                    pair(lambda some, _: f"{len(some)} of {of}"),  # noqa: B023
                    pair(lambda some, _: f"{show(mean(some, 'cost'), 1) or 'none'}"),
                    show(cases.full(name), 1),
                    pair(lambda some, _: f"{100 * mean(some, 'early'):.0f}%" if some else "none"),
                    pair(lambda some, _: show(mean(some, "let_down"), 3) or "none"),
                    pair(
                        lambda some, _: (
                            show(max(row["let_down"] for row in some), 3) if some else "none"
                        )
                    ),
                    pair(lambda some, _: show(mean(some, "let_down_last"), 3) or "none"),
                    pair(lambda some, _: show(mean(some, "wasted")) or "none"),
                    pair(lambda some, _: show(mean(some, "changes")) or "none"),
                    pair(lambda some, _: show(mean(some, "effort")) or "none"),
                ]
            )
    columns = [
        "set",
        "refused with a plan",
        "held against",
        "seeds certified",
        "cost",
        "everything",
        "act early",
    ]
    columns += ["let down", "highest", "at the last question", "wasted", "changes", "effort"]
    return table(columns, rows)


def against_nearest(cases: Cases) -> str:
    """The certified cost of three recipes under the same promise."""
    rows = []
    for name in cases.sets:
        for reference, words in NAMES.items():
            costs = [
                [cases.cost(name, recipe, reference, alpha) for recipe in RECIPES]
                for alpha in ALPHAS
            ]
            count = [
                [len(certified(cases.rows(name, recipe, reference, alpha))) for recipe in RECIPES]
                for alpha in ALPHAS
            ]
            cells = [
                " · ".join(f"{costs[i][j]:.1f} ({count[i][j]})" for i in range(len(ALPHAS)))
                for j in range(len(RECIPES))
            ]
            rows.append([name, words, *cells, f"{cases.full(name):.1f}"])
    return table(["set", "held against", *RECIPES, "everything"], rows)


def judged(cases: Cases) -> str:
    """Plans under judges that nobody has met, where people act and at the end."""
    rows = []
    for name in cases.sets:
        for alpha in ALPHAS:
            some = certified(cases.rows(name, "edfa", "retrained", alpha))
            rows.append([name, f"stop, alpha {alpha:g}", len(some), *_validity(some, "at_stop")])
        for recipe in RECIPES:
            some = cases.rows(name, recipe, "retrained", 0.2)
            rows.append([name, f"end, {recipe}", len(some), *_validity(some, "at_end")])
    return table(["set", "where", "seeds", "same kind", "HGB", "RF", "LR"], rows)


def _validity(rows: list[dict[str, Any]], where: str) -> list[str]:
    cells = []
    for judge in ("same kind", "HGB", "RF", "LR"):
        pairs = [row[where][judge] for row in rows if judge in row.get(where, {})]
        cells.append(
            " / ".join(show(float(np.nanmean(column))) for column in zip(*pairs, strict=True))
            if pairs
            else ""
        )
    return cells


def peers(cases: Cases) -> str:
    """Complete people: our plans and those of two published ways to robust recourse."""
    rows = []
    for name in cases.sets:
        for way in [entry["way"] for entry in cases.of(name)[0]["peers"]]:
            some = [
                entry for case in cases.of(name) for entry in case["peers"] if entry["way"] == way
            ]
            judged = [{"at": entry["judged"]} for entry in some]
            figures = [show(mean(some, figure)) for figure in ("coverage", "changes", "distance")]
            rows.append([name, way, *figures, *_validity(judged, "at")])
    return table(
        [
            "set",
            "plans",
            "people with one",
            "changes",
            "distance (sd)",
            "same kind",
            "HGB",
            "RF",
            "LR",
        ],
        rows,
    )


def defaults(cases: Cases) -> str:
    """What a user gets without any setting but the threshold."""
    rows = []
    for name in cases.sets:
        for case in cases.of(name):
            given, figures = case["default"], case["default"]["evaluation"]
            risk = "" if figures["risk"] is None else f"{figures['risk']:.3f} of {figures['n']}"
            cost = f"{figures['cost']:.1f} of {figures['cost_end']:.1f}"
            rows.append(
                [name, case["seed"], NAMES[given["reference"]], given["status"], cost, risk]
            )
    return table(["set", "seed", "held against", "status", "cost, all people", "let down"], rows)


def bars(cases: Cases, speed: dict[str, float]) -> str:
    """What was asked, and what was measured."""
    sensible = cases.sensible()
    cells = [
        row for case in cases.cases for row in certified(case["rows"]) if row["recipe"] == "edfa"
    ]
    kept = [row["let_down"] <= row["alpha"] for row in cells if row["let_down"] is not None]
    kept_all = [
        row["let_down_all"] <= row["alpha"] for row in cells if row["let_down_all"] is not None
    ]
    surely = [
        float(binom.sf(round(row["let_down"] * row["n_early"]) - 1, row["n_early"], row["alpha"]))
        < 0.05
        for row in cells
        if row["let_down"] is not None
    ]

    def sets(reference: str, alpha: float) -> str:
        count = {
            name: len(certified(cases.rows(name, "edfa", reference, alpha))) for name in sensible
        }
        every = [name for name, n in count.items() if n == len(cases.of(name))]
        return f"{len(every)} of {len(sensible)} in every seed, {sum(n > 0 for n in count.values())} in some"

    def works(judge: str, bar: float, alpha: float) -> str:
        good = []
        for name in sensible:
            some = certified(cases.rows(name, "edfa", "retrained", alpha))
            values = [row["at_stop"][judge][0] for row in some if judge in row["at_stop"]]
            good += [(name, float(np.mean(values)))] if values else []
        fine = sum(value >= bar for _, value in good)
        return f"{fine} of {len(good)}: " + ", ".join(f"{name} {value:.2f}" for name, value in good)

    halves = []
    for name in sensible:
        ratio = cases.cost(name, "edfa", "retrained", 0.2) / cases.cost(
            name, "nearest", "retrained", 0.2
        )
        halves.append((name, ratio))
    half = f"{sum(ratio <= 0.5 for _, ratio in halves)} of {len(halves)}: "
    half += ", ".join(f"{name} {ratio:.2f}" for name, ratio in halves)
    rows: list[list[Any]] = [
        [
            "sets whose card leaves at least half of the refused a plan",
            "5",
            f"{len(sensible)}: {', '.join(sensible)}",
        ],
        [
            "early actors let down at most alpha, certified cells",
            "all",
            f"{sum(kept)} of {len(kept)}",
        ],
        [
            "all who act let down at most alpha, certified cells",
            "95%",
            f"{sum(kept_all)} of {len(kept_all)}",
        ],
        [
            "early actors let down more than alpha, beyond chance of the test people (5 %)",
            "5%",
            f"{sum(surely)} of {len(surely)}",
        ],
        ["retrained promise at 0.2", "all of these sets", sets("retrained", 0.2)],
        ["retrained promise at 0.1", "3", sets("retrained", 0.1)],
        ["promise against all features at 0.2", "4", sets("all_features", 0.2)],
        [
            "plans that work, same kind, told to act at alpha 0.1",
            "0.9, all but one",
            works("same kind", 0.9, 0.1),
        ],
        [
            "plans that work, same kind, told to act at alpha 0.2",
            "0.9, all but one",
            works("same kind", 0.9, 0.2),
        ],
        [
            "plans that work, HGB of all features, alpha 0.1",
            "0.7, all but one",
            works("HGB", 0.7, 0.1),
        ],
        [
            "plans that work, HGB of all features, alpha 0.2",
            "0.7, all but one",
            works("HGB", 0.7, 0.2),
        ],
        ["cost, of the nearest recipe's, retrained promise at 0.2", "0.5, all but two", half],
        ["an interview step, of one without a committee", f"{STEP_BAR}", f"{speed['step']:.2f}"],
        ["a file of complete people", f"{FILE_BAR}", f"{speed['complete']:.2f}"],
        ["a file of half-known people", f"{FILE_BAR}", f"{speed['half']:.2f}"],
    ]
    return table(["bar", "asked", "measured"], rows)


def measure_speed() -> dict[str, float]:
    """Times with a committee of 12 over times without one: a step of an interview, and files; Adult, 10,000 rows."""
    data = edfa.load("adult", cap=10_000)
    fitted = {
        size: edfa.Advisor(threshold="balanced", committee=size, reference="trajectory_end").fit(
            data
        )
        for size in (0, 12)
    }
    people = data.test.frame.head(INTERVIEWS).to_dict("records")
    whole = data.test.frame[list(data.schema.names)]
    some, random = whole.copy(), np.random.default_rng(0)
    for name in (feature.name for feature in data.schema if not feature.start):
        some.loc[random.random(len(some)) < 0.5, name] = None
    jobs: dict[str, Callable[[Any], Any]] = {
        "step": lambda advisor: [_interview(advisor, person) for person in people],
        "complete": lambda advisor: advise(advisor.fitted, whole),
        "half": lambda advisor: advise(advisor.fitted, some),
    }
    ratios = {}
    for name, job in jobs.items():
        plain, committee = best(
            *(lambda size=size: job(fitted[size]) for size in fitted),  # type: ignore[misc]  # noqa: B023
            repeats=3,
            clock=time.process_time,
        )
        ratios[name] = committee / plain
    return ratios


def _interview(advisor: Any, person: dict[str, Any]) -> None:
    start = {
        f.name: person[f.name] for f in advisor.schema if f.start and person[f.name] is not None
    }
    interview = advisor.interview(start)
    while (question := interview.question) is not None:
        interview.answer({question.feature: person[question.feature]})
        _ = interview.decision, interview.plans(), interview.standing


def report(folder: Path) -> None:
    """Write docs/results/promise.md."""
    cases, speed = Cases(folder), measure_speed()
    write(
        "promise",
        "The promise to people who are told to act",
        "Sets of at most 10,000 rows, seeds 0 to 2, SubsetXGB, decisions at the base rate, the cards' rules and "
        "directions; delta = 0.05. An advisor tells a refused person to act at the first plan whose survival is high "
        "enough; they are *let down* if they do the plan and what the promise is held against still refuses them. "
        "*Wasted* is the share who would be granted without it. Costs are means over test people with a plan at some "
        "step; cells are alpha = 0.1 · 0.2. The cases were computed on a larger machine with XGBoost 3.4.1.",
        "## What was asked",
        bars(cases, speed),
        "## Cost and let-downs",
        headline(cases),
        "## The same promise for other recipes",
        "Mean certified cost (certified seeds in brackets); a seed without a certificate counts with everything asked. "
        "*nearest* is the paper's recipe: EDFA's order, nearest plans, uncertainty.",
        against_nearest(cases),
        "## Plans under judges that took no part",
        "Share of plans that work: of all · of those whom the judge refuses without the plan. Judges learnt from half "
        "of the training people and the calibration people: eight of the same kind on the blanket; "
        "gradient boosting, random forest and logistic regression on all features. *stop*: people told to act under "
        "the retrained promise.",
        judged(cases),
        "## Robust recourse of others",
        "Up to 300 refused test people a seed, everything of the blanket known. RobX and BetaRCE are our own code "
        "after the ideas of their papers, with settings of ours (`benchmarks/peers/robust_recourse.py`); they start from the nearest plan, and know no card: they may "
        "change what nobody can. RobX with a stability halfway between the threshold and 1, BetaRCE with 32 models and "
        "delta 0.9.",
        peers(cases),
        "## What an advisor does by default",
        "alpha = 0.2. Costs are means over all test people: whoever is granted is asked to the end.",
        defaults(cases),
    )
