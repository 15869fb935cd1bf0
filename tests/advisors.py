"""Advisors that several test files use, fitted once in a run of the tests and loaded by every other
process; and people to ask.
"""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from filelock import FileLock

import edfa
from edfa.certification.certificate import Certificate

PLAIN = Path(__file__).parent / "german_plain.toml"
FOLDER: Path | None = None  # where the processes of this run share advisors; see conftest.py


def promising(fitted, ending=(), **changes):
    """A fitted advisor with another promise; ``ending`` is what changes about being told to act."""
    endings = tuple(
        replace(each, **dict(ending)) if each.name == "act" else each
        for each in fitted.promise.endings
    )
    return replace(fitted, promise=replace(fitted.promise, endings=endings, **changes))


@cache
def plain_german():
    """German credit with a card that leaves nearly everything free, for tests of searching
    itself.
    """
    return edfa.Table.from_frame(edfa.load("german").frame, edfa.Schema.read(PLAIN), name="german")


def shared(name, table=None, **settings):
    """An advisor on German credit or another set, decided at the base rate, so that a good share is
    refused.

    The first process that asks for ``name`` fits and saves it, the others load it.
    """
    folder = FOLDER / "advisors" / name
    with FileLock(FOLDER / f"{name}.lock"):
        if not folder.exists():
            made = edfa.Advisor(threshold="balanced", **{"loss": "let_down"} | settings)
            made.fit(edfa.load("german") if table is None else table()).save(folder)
    return edfa.Advisor.load(folder)


@cache
def german():
    """The paper's recipe."""
    return shared("german", predictor=edfa.SubsetXGB(n_estimators=40), searcher="nearest")


@cache
def mixed():
    """The same with both kinds of models: of single sets on the policy's path, and a masked one for
    any other.
    """
    return shared("mixed", predictor=edfa.SubsetXGB("mixed", n_estimators=40), searcher="nearest")


@cache
def surviving():
    """German credit with plans and questions chosen to last."""
    return shared("surviving", predictor=edfa.SubsetXGB(n_estimators=40))


def made_up_endings(**tau):
    """German credit with three endings, whose certificates are made up: see ``with_endings``."""
    settings = {"loss": "in_vain", "reference": "trajectory_end", "rules": edfa.Rules(max_effort=1)}
    advisor = shared("endings", predictor=edfa.SubsetXGB(n_estimators=40), **settings)
    advisor.fitted_ = with_endings(advisor.fitted, **tau)
    return advisor


def with_endings(fitted, **tau):
    """A fitted advisor whose certificates are made up: of each ending that is named, at this
    threshold; the others promise nothing.
    """
    ends = fitted.promise.endings
    made = {
        end.name: Certificate(
            "certified" if end.name in tau else "risk_limited",
            end.alpha,
            0.02,
            "cp",
            "early",
            300,
            200,
            tau=tau.get(end.name),
            risk=0.01,
            bound=end.alpha,
            triggered=0.5,
            signal=end.signal,
            loss=end.loss,
            reference=fitted.promise.reference,
            advisor=fitted.fingerprint,
            family_delta=0.05,
            include_last_step=True,
        )
        for end in ends
    }
    return replace(fitted, promise=fitted.promise.with_certificates(made))


@cache
def seeing_all():
    """The same, with a promise about the model that sees every feature."""
    model = edfa.SubsetXGB(n_estimators=40)
    return shared("seeing_all", predictor=model, reference="all_features")


@cache
def adults():
    """Enough people for the promise of three endings."""
    return edfa.load("adult", cap=6000)


@cache
def ending():
    """The default advisor of these, with a promise about each ending of an interview."""
    model = edfa.SubsetXGB(n_estimators=40)
    return shared("ending", adults, predictor=model, loss="in_vain", reference="trajectory_end")


def config(folder, **settings):
    """An advisor file with these settings, in a folder; a dict is a section."""
    write = lambda value: json.dumps(value).replace("NaN", "nan")  # noqa: E731
    plain = {key: value for key, value in settings.items() if not isinstance(value, dict)}
    lines = [f"{key} = {write(value)}" for key, value in plain.items()]
    for section, values in settings.items():
        if section not in plain:
            lines += [f"[{section}]", *(f"{key} = {write(v)}" for key, v in values.items())]
    path = folder / "advisor.toml"
    path.write_text("\n".join(lines))
    return path


def words(table, rows=None):
    """Test people in words, as the encoder understands them (numbers beyond the range at its
    edge).
    """
    frame = table.encoder.decode(table.test.X if rows is None else rows)
    return [
        {k: v for k, v in person.items() if v is not None and v == v}
        for person in frame.to_dict("records")
    ]


def begin(advisor, person, **options):
    """An interview that knows the start set."""
    return advisor.interview({n: person.get(n) for n in advisor.schema.start}, **options)


def walk(interview, person):
    """Every state of an interview that is answered truthfully to the end; what is not recorded is
    told as such.
    """
    yield interview
    while (asked := interview.question) is not None:
        interview.answer({asked.feature: person.get(asked.feature)})
        yield interview


def part_way(advisor, rows, seed=0):
    """People in the middle: the policy's own order up to a random step, some with a fact too many
    or too few.
    """
    fitted, random = advisor.fitted, np.random.default_rng(seed)
    run = edfa.acquire(
        rows, fitted.policy, fitted.model, "inf", reference=fitted.train, explain=False
    )
    known = (run.when >= 0) & (
        run.when <= random.integers(0, run.when.max() + 1, len(rows))[:, None]
    )
    spoilt = random.random(len(rows)) < 0.3
    known[spoilt] ^= random.random((spoilt.sum(), rows.shape[1])) < 0.1
    return np.where(known, rows, np.float32(np.nan))


@cache
def always(name):
    """Whoever is refused is told to act, or that nothing helps; for the ending "granted" whoever is
    not is told so.
    """
    return made_up_endings(granted=1.0 if name == "granted" else -1.0, act=1.0, nothing=1.0)


@cache
def never():
    """The same advisor, which tells nobody anything before the end."""
    return made_up_endings(granted=-1.0, act=-1.0, nothing=-1.0)


@cache
def person(name):
    """The first test person who is told this ending before the last question: what they know then,
    the start set first.
    """
    for facts in words(edfa.load("german")):
        interview = begin(always(name), facts)
        while not interview.standing.ends:
            interview.answer({interview.question.feature: facts[interview.question.feature]})
        standing = interview.standing
        if (standing.status, standing.promised, standing.complete) == (name, True, False):
            return dict(interview.log.facts)
    raise AssertionError(f"nobody is told {name}")


def held(advisor, name, language="en"):
    """An interview that knows what this person knows, told as it is asked."""
    interview = begin(advisor, person(name), language=language)
    for feature, value in person(name).items():
        if feature not in interview.log.facts:
            interview.answer({feature: value})
    return interview
