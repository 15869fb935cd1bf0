"""Write what three advisors say, as text files that can be compared before and after a change.

    python tools/advice_snapshot.py FOLDER

German credit with the default recipe, Adult (4,000 rows) with a certificate for each sex, and
German credit decided by a user model: their certificates, a file of 300 people each, and twelve
interviews each, step by step. Fingerprints, versions and times are left out. Only public names are
used, so that the same file runs on an older commit: ``PYTHONPATH=OLD python tools/...``.
"""

import html
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import edfa
from edfa.advice.batch import advise

PEOPLE, INTERVIEWS, STEPS = 300, 12, 6


def advisors() -> dict[str, tuple[Any, Any]]:
    """Fitted advisors and their tables, by name."""
    german = edfa.load("german")
    adult = edfa.load("adult", cap=4000)
    own = edfa.wrap(_user_model(german))
    return {
        "german": (edfa.Advisor(threshold="balanced").fit(german, n_jobs=1), german),
        "adult": (edfa.Advisor(threshold="balanced", groups="sex").fit(adult, n_jobs=1), adult),
        "user_model": (edfa.Advisor(predictor=own).fit(german, n_jobs=1), german),
    }


def _user_model(table: Any) -> Any:
    """A logistic regression learnt from all features of the training part."""
    frame = table.train.frame[list(table.schema.names)]
    words = [c for c in frame if not pd.api.types.is_numeric_dtype(frame[c])]
    numbers = [c for c in frame if c not in words]
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), words), (StandardScaler(), numbers)
    )
    model = make_pipeline(columns, LogisticRegression(max_iter=2000))
    return model.fit(frame, table.train.frame[table.schema.target])


def certificates(advisor: Any) -> Any:
    """Certificates as JSON, without what names the advisor."""
    parts = {"": advisor.certificate} if advisor.groups is None else advisor.certificates
    return {label: _plain(json.loads(part.to_json())) for label, part in dict(parts).items()}


def _plain(value: Any) -> Any:
    """A JSON value without identities, with floats rounded to twelve digits."""
    hidden = ("fingerprint", "versions", "time", "advisor", "id", "model", "version")
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in sorted(value.items()) if k not in hidden}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return float(f"{value:.12g}") if isinstance(value, float) else value


def interview(advisor: Any, facts: dict[str, Any], start: list[str]) -> list[Any]:
    """One person's interview to its end, at most ``STEPS`` questions: what is shown at each step."""
    held = advisor.interview({name: facts[name] for name in start if name in facts})
    steps = []
    for _ in range(STEPS):
        question = held.question
        steps.append(
            {
                "question": None if question is None else [question.feature, question.cost],
                "decision": [held.decision.outcome, held.decision.refused],
                "probability": float(f"{held.decision.probability:.12g}"),
                "standing": held.standing.status,
                "guarantee": held.guarantee,
                "plans": [_plan(plan) for plan in held.plans()],
                "no_plan": None if held.no_plan is None else held.no_plan.reason,
                "flags": list(held.flags),
                "seen": _visible(held._repr_html_()),
            }
        )
        if question is None:
            break
        name = question.feature
        if facts.get(name) is None:
            held.decline(name)
        else:
            held.answer({name: facts[name]})
    return steps


def _plan(plan: Any) -> Any:
    changes = [
        [c.feature, str(c.before), str(c.after), str(c.low), str(c.high)] for c in plan.changes
    ]
    numbers = [plan.probability_after, plan.effort, plan.survival]
    return [changes, [None if n is None else float(f"{n:.10g}") for n in numbers]]


def _file(advice: pd.DataFrame) -> Any:
    """A file of advice as records; of plans what is changed and a few numbers, as text."""
    rows = json.loads(advice.to_json(orient="records"))
    for row in rows:
        plans = [_short(plan) for plan in json.loads(row["plans"] or "[]")]
        row["plans"] = json.dumps(plans, ensure_ascii=False)
    return rows


def _short(plan: dict[str, Any]) -> dict[str, Any]:
    """What is compared of a plan in a file."""
    if "probability" in plan:  # as files were written once
        return plan
    changes = [
        {"feature": c["feature"], "from": c["before"], "to": c["after"]}
        | ({name: c[name] for name in ("low", "high")} if "low" in c else {})
        for c in plan["changes"]
    ]
    numbers = {name: plan[name] for name in ("effort", "months", "support") if name in plan}
    return {"changes": changes, "probability": plan["probability_after"]} | numbers


def _visible(page: str) -> str:
    """The words of an HTML page."""
    page = re.sub(r"<(style|svg|script).*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def main(folder: Path) -> None:
    """Write three files for each advisor."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (advisor, table) in advisors().items():
        frame = table.test.frame[list(table.schema.names)].head(PEOPLE)
        half = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.3)
        said = {
            "certificates": certificates(advisor),
            "file": _file(advise(advisor.fitted, half)),
            "interviews": [
                interview(
                    advisor,
                    {k: v for k, v in row.items() if v == v and v is not None},
                    [f.name for f in table.schema if f.start],
                )
                for row in frame.head(INTERVIEWS).to_dict("records")
            ],
        }
        for what, content in said.items():
            text = json.dumps(content, indent=1, ensure_ascii=False, default=str)
            (folder / f"{name}_{what}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
