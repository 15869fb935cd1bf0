"""The tables of docs/results/own_model.md, from the lines that benchmarks/own_model.py has computed."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from report import table, write
from scipy.stats import binom

STEP_BARS = {
    "xgboost": 4.0,
    "logistic": 4.0,
    "hgb": 8.0,
}  # times an interview step, and a file, of SubsetXGB
LABELS = {
    "hgb": "HistGradientBoosting",
    "forest": "random forest",
    "logistic": "logistic Pipeline",
    "xgboost": "XGBoost",
}
BEFORE_SHARES = (
    " *Timed before everybody in a file was told the decision of most completions: a file now asks about up to 32 rows "
    "a person more.*"
)
VIEWS = ("distilled", "completed")
Line = dict[str, Any]


def pairs(lines: Sequence[Line]) -> dict[tuple[str, str], list[Line]]:
    """Lines without an error by data set and model, in the order of the issue."""
    fine = [line for line in lines if "error" not in line]
    sets = [
        name
        for name in ("german", "adult", "acs_income")
        if any(line["set"] == name for line in fine)
    ]
    sets += sorted({line["set"] for line in fine} - {*sets})
    grouped = {
        (name, model): sorted(
            (line for line in fine if (line["set"], line["model"]) == (name, model)),
            key=lambda line: line["seed"],
        )
        for name in sets
        for model in LABELS
    }
    return {pair: some for pair, some in grouped.items() if some}


def promises(lines: Sequence[Line], alpha: float, *, certified: bool = True) -> list[Line]:
    """What was measured at one alpha, of every cell, or of those with a certificate."""
    rows = [
        row
        for line in lines
        if "error" not in line
        for row in line["promises"]
        if row["alpha"] == alpha
    ]
    return [row for row in rows if row["status"] == "certified" or not certified]


def mean(rows: Sequence[Line], name: str) -> float:
    values = [row[name] for row in rows if row.get(name) is not None]
    return float(np.mean(values)) if values else float("nan")


def show(value: float | None, digits: int = 2, times: float = 1.0, unit: str = "") -> str:
    return "" if value is None or np.isnan(value) else f"{times * value:.{digits}f}{unit}"


def percent(value: float | None, digits: int = 0) -> str:
    return show(value, digits, 100, "%")


def spread(rows: Sequence[Line], name: str) -> str:
    """The mean of a share over seeds, with its range."""
    values = [row[name] for row in rows if row.get(name) is not None]
    if not values:
        return "none"
    low, high = (percent(end, 1) for end in (min(values), max(values)))
    return percent(float(np.mean(values)), 1) + (f" ({low} to {high})" if len(values) > 1 else "")


def beyond_chance(row: Line) -> bool:
    """Whether so many let-downs among the early actors would be rare (5 %) if alpha were the truth."""
    return (
        float(binom.sf(round(row["let_down"] * row["early"]) - 1, row["early"], row["alpha"]))
        < 0.05
    )


def promise_bars(cells: Sequence[Line], alphas: Sequence[float]) -> list[list[str]]:
    """Each bar about the promise, and in how many certified cells it held."""
    rows = []
    for alpha in alphas:
        every = promises(cells, alpha, certified=False)
        some = [row for row in promises(cells, alpha) if row["early"]]
        kept = sum(row["let_down"] <= alpha for row in some)
        rare = sum(beyond_chance(row) for row in some)
        people, down = (
            sum(row["early"] for row in some),
            sum(row["let_down"] * row["early"] for row in some),
        )
        copied = [row for row in some if row["copies"] is not None]
        held = sum(row["copies"] <= alpha for row in copied)
        pooled = f"; {down:.0f} of {people} people, {percent(down / people, 1)}" if people else ""
        certified = f"{len(promises(cells, alpha))} of {len(every)} cells"
        rows += [
            [f"certified at alpha {alpha:g}", "", certified],
            [
                f"early actors let down by the full own model: at most {alpha:g}",
                "every certified cell",
                f"held in {kept} of {len(some)} in which somebody acts early{pooled}",
            ],
            [f"more than {alpha:g}, beyond chance (5 %)", "5% of them", f"{rare} of {len(some)}"],
            [
                f"failing with copies of the model learnt again: at most {alpha:g}",
                "none promised",
                f"held in {held} of {len(copied)}; mean {percent(mean(copied, 'copies'), 1) or 'none'}",
            ],
        ]
    return rows


def ratio(line: Line, what: str, beside: str) -> float:
    """How many times as long a step or a file takes, with the own model, as with ``SubsetXGB``."""
    figure = "ms" if what == "steps" else "seconds"
    own, other = line[what]["own"][figure], line[what][beside][figure]
    return float(own / other) if own is not None and other else float("nan")


def speed_bars(timing: Sequence[Line]) -> list[list[str]]:
    """Each bar of speed, and for how many data sets it held."""
    rows = []
    for what, words in (("steps", "an interview step"), ("file", "a file")):
        for model, bar in STEP_BARS.items():
            lines = [
                line for (_, name), some in pairs(timing).items() if name == model for line in some
            ]
            for beside, other in (
                ("default", "`Advisor()`"),
                ("same questions", "`SubsetXGB` asking the same"),
            ):
                ratios = [(line["set"], ratio(line, what, beside)) for line in lines]
                held = sum(value <= bar for _, value in ratios)
                each = ", ".join(f"{name} {value:.1f}" for name, value in ratios)
                rows.append(
                    [
                        f"{words}, {LABELS[model]}, over {other}",
                        f"at most {bar:g}" if beside == "default" else f"({bar:g})",
                        f"held in {held} of {len(ratios)}: {each}" if ratios else "not measured",
                    ]
                )
    return rows


def promise_table(cells: Sequence[Line], alphas: Sequence[float]) -> str:
    """A row for each data set and model: whom the promise reaches, and who is let down."""
    rows = []
    for (name, model), some in pairs(cells).items():
        every = [promises(some, alpha) for alpha in alphas]

        def both(make: Callable[[list[Line]], str], every: list[list[Line]] = every) -> str:
            return " · ".join(make(part) or "none" for part in every)

        rows.append(
            [
                name,
                LABELS[model],
                percent(mean(some, "accuracy"), 1),
                f"{mean(some, 'uses'):.0f} of {mean(some, 'features'):.0f}",
                " · ".join(f"{len(part)} of {len(some)}" for part in every),
                both(lambda part: show(mean(part, "early"), 0)),
                both(lambda part: spread(part, "let_down")),
                both(lambda part: percent(mean(part, "copies"), 1)),
                both(lambda part: percent(mean(part, "wasted"))),
                both(lambda part: percent(mean(part, "reached"))),
                both(lambda part: percent(mean(part, "cost"))),
                both(lambda part: percent(mean(part, "cost_planned"))),
                percent(mean(promises(some, alphas[0], certified=False), "cost_end")),
                str(sum(row["differs"] for line in some for row in line["promises"])),
            ]
        )
    columns = [
        "set",
        "model",
        "right",
        "uses",
        "seeds certified",
        "told to act early",
        "let down",
        "with copies",
    ]
    columns += [
        "wasted",
        "refused reached",
        "cost, all",
        "cost, with a plan",
        "all questions",
        "books differ",
    ]
    return table(columns, rows)


def fidelity_table(cells: Sequence[Line]) -> str:
    """A row for each data set and model: RMSE and equal decisions of each view."""
    rows = []
    for (name, model), some in pairs(cells).items():
        cells_of = []
        for view in VIEWS:
            made = [
                line["fidelity"][view] for line in some if "rmse" in line["fidelity"].get(view, {})
            ]
            if not made:
                cells_of += ["not readable", ""]
                continue
            cells_of.append(f"{show(mean(made, 'rmse'), 3)} / {show(mean(made, 'path_rmse'), 3)}")
            cells_of.append(f"{percent(mean(made, 'same'))} / {percent(mean(made, 'path_same'))}")
        rows.append([name, LABELS[model], *cells_of])
    return table(
        ["set", "model", *(f"{view}, {what}" for view in VIEWS for what in ("RMSE", "same"))], rows
    )


def speed_table(cells: Sequence[Line], timing: Sequence[Line]) -> str:
    """A row for each data set and model: seconds of fit, an interview step, and a file."""
    fits, rows = pairs(cells), []
    for pair, some in pairs(timing).items():
        steps, files = ([line[what] for line in some] for what in ("steps", "file"))
        own = [line["own"] for line in steps]
        plain, same = ([line[kind] for line in steps] for kind in ("default", "same questions"))
        whole = [line["own"] for line in files]
        times = [
            show(float(np.mean([ratio(line, what, beside) for line in some])), 1)
            for what in ("steps", "file")
            for beside in ("default", "same questions")
        ]
        rows.append(
            [
                pair[0],
                LABELS[pair[1]],
                show(mean(fits.get(pair, []), "fit_seconds"), 0),
                show(float(np.mean([line["fit"]["default"] for line in some])), 1),
                f"{mean(own, 'steps'):.1f} · {mean(plain, 'steps'):.1f}",
                *(
                    f"{show(mean(part, 'ms'), 1)} ({show(mean(part, 'median_ms'), 1)})"
                    for part in (own, plain, same)
                ),
                *times[:2],
                show(mean(own, "calls"), 1),
                show(mean(own, "rows"), 0),
                show(mean(whole, "seconds"), 1),
                *times[2:],
                show(mean(whole, "rows"), 0),
            ]
        )
    columns = [
        "set",
        "model",
        "fit, s",
        "default's fit, s",
        "steps",
        "step, ms",
        "default's",
        "same questions'",
        "ratio",
    ]
    columns += [
        "ratio, same questions",
        "calls a step",
        "rows a step",
        "file, s",
        "ratio",
        "ratio, same questions",
    ]
    return table([*columns, "rows a person"], rows)


def made_with(lines: Sequence[Line]) -> str:
    """The versions and seeds of what is shown."""
    versions = sorted(
        {", ".join(f"{k} {v}" for k, v in line["versions"].items()) for line in lines}
    )
    seeds = sorted({line["seed"] for line in lines})
    return f"Seeds {', '.join(map(str, seeds))}; computed with {' and '.join(versions)}."


def failures(lines: Sequence[Line]) -> str:
    """Cells that went wrong, each with its error."""
    wrong = [line for line in lines if "error" in line]
    each = [
        f"- {line['set']}, {line['model']}, seed {line['seed']}: {line['error']}" for line in wrong
    ]
    return "\n".join(["**Cells without figures:**", "", *each]) if wrong else ""


def report(cells: Sequence[Line], timing: Sequence[Line]) -> None:
    """Write docs/results/own_model.md."""
    lines = [*cells, *timing]
    alphas = sorted(
        {row["alpha"] for line in cells for row in line.get("promises", [])}, reverse=True
    )
    people = sorted({line["file"]["people"] for line in timing if "file" in line})
    turns = (
        " or ".join(
            str(n) for n in sorted({line["at_once"] for line in timing if "at_once" in line})
        )
        or "none"
    )
    levels = " · ".join(f"{alpha:g}" for alpha in alphas)
    parts = [
        "Models fitted on raw training frames as their owners would fit them, then `Advisor(predictor=wrap(model))`; "
        "german with all rows, adult and acs_income with 8,000; delta = 0.05; the likeliest class is decided. "
        "HistGradientBoosting has categories (on acs_income an `OrdinalEncoder`, since it refuses more than 255 "
        "levels); the forest (200 trees) and the logistic model stand behind a `OneHotEncoder`; XGBoost has "
        f"categories, 200 trees of depth 4. {made_with(lines)} In parts: `python benchmarks/own_model.py --measure`, "
        "`--timing`, `--render`.",
        "## What was asked",
        table(["bar", "asked", "measured"], promise_bars(cells, alphas) + speed_bars(timing)),
        failures(lines),
        "## The promise, held against the full own model",
        f"Cells are alpha = {levels}, means over certified seeds. *Let down* (with the range over seeds): told to act "
        "before the last question, and refused by the model itself on the complete raw row with the plan made. *With "
        "copies*: the same under three copies of the model, each learnt from a bootstrap sample of the training "
        "people; nobody was promised that. *Wasted*: granted without the plan. *Refused reached*: of those whom the "
        "full model refuses, told to act early. *Cost*: a share of the cost of all features, over all test people and "
        "over those with a plan at some step; *all questions*: with nobody told to act. *Right*: the model's accuracy "
        "on test people. *Books differ*: people told to act of whom the advisor's own records say otherwise than the "
        "model does of their raw rows, all seeds and both alphas together.",
        promise_table(cells, alphas),
        "## How near the views come to the model",
        "RMSE to the full answer, and the share of equal decisions, on test people: random masks / the advisor's own "
        "questions. Means over seeds. The advisor uses *distilled*.",
        fidelity_table(cells),
        "## What it takes",
        "Processor seconds and milliseconds (means, medians in brackets), one thread, seed 0; fits are means over all seeds. A *step* is an answer, "
        "the standing, the plans and the next question, of up to 30 test people whom both the own model and the default "
        "advisor's model refuse; advisors take turns in one process, "
        f"{turns} at a time on the machine, and nobody is met twice. Ratios are to the default `Advisor()` (a `SubsetXGB` that asks for the outcome's blanket alone), and to one "
        "of a `SubsetXGB` that asks for the same features as the own model's advisor, held against all features. *Steps*: "
        "questions a person, own · default. The file has "
        f"{' or '.join(f'{n:,}' for n in people)} test people, drawn with repetition, each feature beyond the start set "
        "known with probability 1/2."
        + ("" if all("shares" in line for line in timing) else BEFORE_SHARES),
        speed_table(cells, timing),
    ]
    write("own_model", "Advice about a model of one's own", *(part for part in parts if part))
