"""How interviews end: granted, act or nothing, what each is worth, and what it costs; seven data sets.

    ./run bench endings

Each case (a set, a seed, what promises are held against, the price of effort, the loss) is one process and one JSON
file in out/endings; what is there is not done again. `python benchmarks/endings.py run JOBS` fills the folder with
several processes, `./run bench endings` does what is left and writes the tables.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from report import table, write
from scipy.special import betainc
from scipy.stats import binom

import edfa
from edfa.advice.fitted import FittedAdvisor
from edfa.advice.promise import Rollout, dry_run, roll_out
from edfa.certification.endings import ENDINGS, Ends, stop_endings
from edfa.certification.replay import Against, decide_at_end, in_vain

FOLDER = Path(__file__).parents[1] / "out" / "endings"
SETS = ("german", "adult", "heloc", "taiwan", "acs_income", "gmsc", "diabetes130")
SEEDS, CAP = (0, 1, 2), 10_000
REFERENCES = {
    "trajectory_end": "own model",
    "all_features": "all features",
    "retrained": "learnt again",
}
BARS = {
    "adult": 0.30,
    "heloc": 0.40,
    "acs_income": 0.65,
    "gmsc": 0.50,
    "taiwan": 0.42,
}  # of all that is asked
ALPHAS = {"granted": 0.05, "act": 0.2, "nothing": 0.1}
LEVELS = np.linspace(0.02, 1.3, 65)  # times alpha: the risks that the joint test goes along


class Case(NamedTuple):
    """One advisor; ``effort`` is its card's price of effort."""

    name: str
    seed: int
    reference: str
    effort: float
    loss: str = "in_vain"

    @property
    def path(self) -> Path:
        """Where its figures are."""
        return FOLDER / f"{'_'.join(map(str, self))}.json"


def cases() -> Iterator[Case]:
    """Every case: what a user gets, without a price of effort, the promise that there was before, each reference."""
    for reference, effort, loss in (
        ("auto", 1.0, "in_vain"),
        ("trajectory_end", 0.0, "in_vain"),
        ("trajectory_end", 0.0, "let_down"),
        *((name, 1.0, "in_vain") for name in REFERENCES),
    ):
        yield from (Case(name, seed, reference, effort, loss) for name in SETS for seed in SEEDS)


def run(case: Case) -> None:
    """Fit the advisor of a case, and write what becomes of test people."""
    whole = edfa.load(case.name, seed=case.seed, cap=None if case.name == "german" else CAP)
    schema = replace(whole.schema, effort_per_price=case.effort)
    data = edfa.Table.from_frame(whole.frame, schema, name=case.name, seed=case.seed)
    advisor = edfa.Advisor(
        threshold="balanced", reference=case.reference, seed=case.seed, loss=case.loss
    ).fit(data, n_jobs=1)
    fitted, result = advisor.fitted, advisor.evaluation_
    rollout = roll_out(fitted, data.test.X, n_jobs=1)
    plans, trajectory = rollout.plans, rollout.trajectory
    group = fitted.group_of(data.test)
    ends = stop_endings(rollout.endings, {n: fitted.tau_for(group, n) for n in rollout.endings})
    told, step = ends.ending == "act", np.asarray(trajectory.step)
    effort, planned = np.zeros(len(told)), plans.legal[ends.row]
    effort[planned] = plans.effort[plans.first[ends.row[planned]]]
    end = decide_at_end(plans, Against())
    vain = in_vain(end, end, fitted.favourable)[ends.row]
    figures: dict[str, Any] = {
        "reference": fitted.promise.reference,
        "cost": result.cost,
        "cost_end": result.cost_end,
        "effort": float(effort[told].mean()) if told.any() else None,
        "burden": float((trajectory.spent[ends.row] + effort).mean()),
        "vain": float(vain[told].mean()) if told.any() else None,
        "n": result.n,
        "excess": result.excess,
        "unasked": int((told & (step[ends.row] == 0)).sum()),
        "status": {name: made.status for name, made in advisor.endings.items()},
        "endings": {name: asdict(so) for name, so in result.endings.items()},
        "points": list(points(rollout, ends, step)),
        "ended_by": [[a, b] for a, b in compare_ended_by(fitted, ends, step, trajectory.last)],
    }
    if case.loss == "in_vain" and not case.effort:
        figures["joint"] = joint(fitted, rollout.endings, case.seed)
    FOLDER.mkdir(parents=True, exist_ok=True)
    case.path.write_text(json.dumps(figures, indent=1))


def points(rollout: Rollout, ends: Ends, step: Any) -> Iterator[dict[str, Any]]:
    """Of people told to act after each number of questions: how many, and how many in vain."""
    records = rollout.endings["act"]
    rows = ends.row[ends.ending == "act"]
    for number in np.unique(step[rows]).tolist():
        here = rows[step[rows] == number]
        yield {
            "questions": number,
            "told": len(here),
            "wrong": float(np.asarray(records.loss)[here].sum()),
        }


def compare_ended_by(
    fitted: FittedAdvisor, ends: Ends, step: Any, last: Any
) -> Iterator[tuple[float, float]]:
    """Of people who are asked each question: the share said to need no other, and the share of test people who
    did not; where at least 100 were asked it.
    """
    reached, told = step[ends.row], ends.ending != None  # noqa: E711
    for number, said in enumerate(fitted.promise.ended_by, 1):
        if (asked := reached >= number).sum() >= 100:
            yield said, float((told & (reached == number)).sum() / asked.sum())


def tally(records: Any, tau: Mapping[str, float]) -> tuple[dict[str, tuple[int, int]], float]:
    """How many are told each ending before their last question, and how many of them wrongly; the mean cost."""
    ends, first = stop_endings(records, tau), records["act"]
    last = np.append(first.person[1:] != first.person[:-1], True)
    early = ~last[ends.row]
    counts = {}
    for name, part in records.items():
        rows = ends.row[early & (ends.ending == name)]
        counts[name] = len(rows), int(np.asarray(part.loss)[rows].sum())
    return counts, float(first.spent[ends.row].mean())


def joint(fitted: FittedAdvisor, test: Any, seed: int) -> dict[str, Any]:
    """The other way to certify three endings: one sequence of triples of thresholds, from the strictest, each
    of which has to pass the tests of all endings at the whole of delta; what it does to test people.
    """
    dry = dry_run(fitted, seed, 1, ["trajectory_end"])["trajectory_end"]
    calibration = roll_out(fitted, fitted.calibration, n_jobs=1).endings
    share = len(calibration["act"].people) / len(dry["act"].people)
    levels: dict[str, Any] = {}
    for name, part in dry.items():
        signals = np.unique(part.signal[part.legal & (part.signal <= 1)])
        signals = (
            np.unique(np.quantile(signals, np.linspace(0, 1, 200))) if len(signals) else signals
        )
        counts = np.array([tally(dry, {name: tau})[0][name] for tau in signals]).reshape(-1, 2)
        risk = (counts[:, 1] + 1) / (counts[:, 0] + 2)
        told, lost = share * counts[:, 0], share * counts[:, 0] * risk
        expected = betainc(np.maximum(told - lost, 1e-9), lost + 1, 1 - ALPHAS[name])
        if len(signals) and expected.min() <= 0.1:
            levels[name] = signals, risk, int(expected.argmin())
    passed, tau = 0, dict[str, float]()
    for level in LEVELS:
        tried = {}
        for name, (signals, risk, first) in levels.items():
            fine = np.flatnonzero(risk <= level * ALPHAS[name])
            tried[name] = float(signals[max(fine.max(initial=0), first)])
        counts = tally(calibration, tried)[0]
        if not all(
            binom.cdf(counts[n][1], counts[n][0], ALPHAS[n]) <= fitted.promise.delta for n in tried
        ):
            break
        passed, tau = passed + 1, tried
    told, cost = tally(test, tau)
    return {"cost": cost, "passed": passed, "told": told}


def read(case: Case) -> dict[str, Any]:
    """What has been measured of a case."""
    return json.loads(case.path.read_text())


def mean(values: Any, digits: int = 2) -> str:
    """The mean of those that are there."""
    there = [value for value in values if value is not None]
    return f"{np.mean(there):.{digits}f}" if there else "none"


def of(name: str, **settings: Any) -> list[dict[str, Any]]:
    """The figures of a set in every seed that was measured."""
    wanted = {"reference": "trajectory_end", "effort": 0.0, "loss": "in_vain"} | settings
    cells = [Case(name, seed, **wanted) for seed in SEEDS]
    return [read(cell) for cell in cells if cell.path.exists()]


def told_rows() -> Iterator[list[str]]:
    """What becomes of people, by set and reference, at the default price of effort."""
    for name in SETS:
        for reference, words in REFERENCES.items():
            cells = of(name, reference=reference, effort=1.0)
            if not cells:
                continue
            row = [name, words]
            for ending in ENDINGS:
                parts = [cell["endings"][ending] for cell in cells]
                certified = sum(cell["status"][ending] == "certified" for cell in cells)
                wrong = [f"{p['wrong']:.3f}" if p["wrong"] is not None else "none" for p in parts]
                row.append(
                    f"{certified} of {len(cells)}: {mean([p['share'] for p in parts])} · {' '.join(wrong)}"
                )
            row += [
                mean([cell["cost"] for cell in cells], 1),
                mean([cell["cost_end"] for cell in cells], 1),
                mean([cell["excess"] for cell in cells]),
                mean([cell["effort"] for cell in cells], 1),
            ]
            yield row


def default_rows() -> Iterator[list[str]]:
    """What a user gets who sets nothing: a row a set, seeds side by side; that table is in the README."""

    def percent(cells: list[dict[str, Any]], ending: str) -> str:
        """Shares of people, and how many of those told early were told wrongly, in percent."""
        parts = [cell["endings"][ending] for cell in cells]
        wrong = ["none" if p["wrong"] is None else f"{100 * p['wrong']:.0f}" for p in parts]
        shares = [f"{100 * part['share']:.0f}" for part in parts]
        return f"{', '.join(shares)} ({', '.join(wrong)})"

    for name in SETS:
        cells = of(name, reference="auto", effort=1.0)
        yield [
            name,
            ", ".join(f"{cell['cost']:.1f} of {cell['cost_end']:.0f}" for cell in cells),
            *(percent(cells, ending) for ending in ENDINGS),
            ", ".join("none" if c["excess"] is None else f"{100 * c['excess']:.0f}" for c in cells),
            ", ".join(REFERENCES[cell["reference"]] for cell in cells),
        ]


def cost_rows() -> Iterator[list[str]]:
    """Cost over all people, before and now, with and without a price of effort."""
    for name in SETS:
        before, free, priced = of(name, loss="let_down"), of(name), of(name, effort=1.0)
        shares = [
            mean([cell["cost"] / cell["cost_end"] for cell in cells])
            for cells in (before, free, priced)
        ]
        bar = BARS.get(name)
        met = "" if bar is None else f"{bar:.2f}: {'met' if float(shares[1]) <= bar else 'missed'}"
        yield [
            name,
            shares[0],
            shares[1],
            met,
            shares[2],
            *(mean([cell["vain"] for cell in cells]) for cells in (before, free, priced)),
            *(mean([cell["excess"] for cell in cells]) for cells in (before, free, priced)),
            *(mean([cell["effort"] for cell in cells], 1) for cells in (before, free, priced)),
            *(mean([cell["burden"] for cell in cells], 1) for cells in (before, free, priced)),
        ]


def test_rows() -> Iterator[list[str]]:
    """Cost over all people with a test for each ending, and with one for all of them."""
    for name in SETS:
        cells = of(name)
        yield [
            name,
            mean([cell["cost"] for cell in cells], 1),
            mean([cell["joint"]["cost"] for cell in cells], 1),
            " ".join(str(cell["joint"]["passed"]) for cell in cells),
        ]


def promise_rows() -> Iterator[list[str]]:
    """How many certificates there are, and how many test parts are above what was promised."""
    for reference, words in REFERENCES.items():
        for ending in ENDINGS:
            cells, certified, above, surely = 0, 0, 0, 0
            for name in SETS:
                for cell in of(name, reference=reference, effort=1.0):
                    told, cells = cell["endings"][ending], cells + 1
                    if cell["status"][ending] != "certified" or told["wrong"] is None:
                        continue
                    certified += 1
                    wrong, n = round(told["wrong"] * told["early"]), told["early"]
                    above += told["wrong"] > ALPHAS[ending]
                    surely += binom.sf(wrong - 1, n, ALPHAS[ending]) < 0.05
            yield [words, ending, ALPHAS[ending], f"{certified} of {cells}", above, surely]


def point_lines() -> Iterator[str]:
    """In vain by the number of questions asked, and how true it is what is said of a question."""
    worst, count, above = 0.0, 0, 0
    for name in SETS:
        for reference in REFERENCES:
            for cell in of(name, reference=reference, effort=1.0):
                for point in cell["points"]:
                    if point["told"] >= 50:
                        count += 1
                        above += point["wrong"] / point["told"] > ALPHAS["act"]
                        worst = max(worst, point["wrong"] / point["told"])
    yield (
        f"Told to act after the same number of questions, at least 50 test people: in vain above 0.2 in {above} of "
        f"{count} places, {worst:.2f} at most. The sentence that people read speaks of all who are told to act before "
        "their last question together."
    )
    pairs = np.array(
        [
            pair
            for name in SETS
            for r in REFERENCES
            for cell in of(name, reference=r, effort=1.0)
            for pair in cell["ended_by"]
        ]
    ).reshape(-1, 2)
    gap = np.abs(pairs[:, 0] - pairs[:, 1])
    yield (
        '"Of 100 people who are asked it at this point, about N need no further question": '
        f"against test people the figure is off by {100 * gap.mean():.1f} points on average, by more than 5 in "
        f"{(gap > 0.05).sum()} of {len(gap)} questions that at least 100 of them were asked, by {100 * gap.max():.0f} at most."
    )


def render() -> None:
    """Write the page."""
    names = ["before", "now, effort free", "default"]
    write(
        "endings",
        "How interviews end",
        "Sets of at most 10,000 rows, seeds 0 to 2, the default advisor (survival search, committee of 12, questions in "
        "the order learnt for endings), decisions at the base rate, delta = 0.05 for all endings together. A person is "
        "told that they are *granted* (at most .05 of these are refused in the end), to *act* (at most .2 in vain: "
        "still refused, or granted without the plan), or that *nothing* helps (at most .1 are granted or have a plan "
        "in the end). Figures are of test people; costs are means over all people.",
        "## What becomes of people",
        "Seeds certified: share of all people told so · wrong among those told before their last question, by seed. "
        "*Excess*: of those told to act early who have a plan in the end, the share whose plan takes more than 1.5 "
        "times the effort of that one. Rows and seeds that are not there were not measured.",
        table(
            ["set", "held against", *ENDINGS, "cost", "everything", "excess", "effort"],
            list(told_rows()),
        ),
        "## What an advisor does by default",
        '`Advisor(threshold="balanced")`, nothing else set. Cost of questions, over all people; share of all people who '
        "are told each ending, in percent (of those told before their last question, how many wrongly); excess, in "
        "percent; what it chose to hold its promises against; by seed.",
        table(
            [
                "set",
                "cost, of all questions",
                *(f"{e} (wrong)" for e in ENDINGS),
                "excess",
                "promised by",
            ],
            list(default_rows()),
        ),
        "## Are the promises kept?",
        "Certified cells in which anybody was told so early; how many test parts are above what was promised (a true "
        "risk just below it is above in half of all test parts), and how many surely are, by a test at .05: one in "
        "twenty would be by chance if every risk were at its limit.",
        table(
            ["held against", "ending", "promised", "certified", "above", "surely above"],
            list(promise_rows()),
        ),
        *point_lines(),
        "## What it costs, and what it spares",
        'Held against the own model at the end. *Before*: the promise of `loss="let_down"` alone. *Effort free*: '
        "`effort_per_price = 0`; the bar is about it. *Default*: `effort_per_price = 1`. Cost as a share of all that is "
        "asked; *in vain* of all told to act; *sum*: price of questions and effort of the plan in hand, over all people.",
        table(
            [
                "set",
                f"cost {names[0]}",
                names[1],
                "bar",
                names[2],
                *(
                    f"{what} {name}"
                    for what in ("in vain", "excess", "effort", "sum")
                    for name in names
                ),
            ],
            list(cost_rows()),
        ),
        "## One test for each ending, or one for all?",
        "Each ending tested at a third of delta, counting what the others may do (`count_for_all`), against one "
        "sequence of triples of thresholds that have to pass all tests at the whole of delta (triples passed, by seed). "
        "A triple fails with any of its endings, so that one that is hard to certify holds up the others.",
        table(
            ["set", "cost, each by itself", "cost, all together", "triples passed"],
            list(test_rows()),
        ),
    )


def measure(jobs: int) -> None:
    """Every case that is not there."""
    due = [case for case in cases() if not case.path.exists()]
    if jobs == 1:
        for case in due:
            run(case)
            print(case, file=sys.stderr, flush=True)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(run, case): case for case in due}
        for future in as_completed(futures):
            future.result()
            print(futures[future], file=sys.stderr, flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if sys.argv[1:2] == ["run"]:
        measure(int(sys.argv[2]))
    elif sys.argv[1:2] == ["render"]:  # what there is
        render()
    else:
        measure(1)
        render()
