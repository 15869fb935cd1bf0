"""A world in which models can be learnt again as often as one likes, from people that nobody has
met before.

Six facts about a borrower, a nearly logistic truth. An advisor is made from one sample A: its
model, a committee that chooses plans, others that judge. The next models are each learnt from a
fresh sample B of the same size.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

import edfa
from edfa import Feature, Schema
from edfa.acquisition import EDFA
from edfa.certification import Against, Records, replay
from edfa.certification.records import Runs
from edfa.certification.risk_curve import trace
from edfa.predictors.committee import Committee

WEIGHTS = np.array([1.4, -1.1, 0.9, 0.8, -0.7, 0.5])
NAMES = tuple(f"f{j}" for j in range(len(WEIGHTS)))
BLANKET = edfa.Blanket("y", dict.fromkeys(NAMES, ()))
TREES, JUDGES = 60, 12
SHARES = (0.5, 0.15)  # of the number of training people, from whom each judge is learnt


def sample(n, *seed):
    """People and their classes: correlated facts of one digit, and a coin for each whose odds are
    the truth.
    """
    random = np.random.default_rng(seed)
    common = random.normal(size=(n, 1))
    facts = np.round(0.5 * common * np.sign(WEIGHTS) + random.normal(size=(n, len(WEIGHTS))), 1)
    good = random.random(n) < 1 / (1 + np.exp(-(facts @ WEIGHTS) - 0.6 * facts[:, 0] * facts[:, 2]))
    frame = pd.DataFrame(facts, columns=NAMES)
    frame["y"] = np.where(good, "yes", "no")
    return frame


def schema():
    """The first fact is known from the start, the second cannot be changed."""
    features = tuple(
        Feature(
            name,
            "continuous",
            cost=float(j > 0),
            start=j == 0,
            change="frozen" if j == 1 else "free",
        )
        for j, name in enumerate(NAMES)
    )
    return Schema(features, "y", "yes", classes=("no", "yes"))


class Fresh:
    """Models of the same kind as an advisor's, each learnt from as many people, drawn anew."""

    columns = np.ones(len(NAMES), dtype=bool)

    def __init__(self, train, seed, count):
        samples = [replace(train, frame=sample(len(train.frame), seed, 2, i)) for i in range(count)]
        self.models = [edfa.SubsetXGB(n_estimators=TREES).fit(part.X, part.y) for part in samples]

    def __len__(self):
        return len(self.models)

    def decide(self, member, rows):
        return self.models[member].decide(self.models[member].predict_proba(rows))


class One:
    """One member of a committee, as a committee."""

    def __init__(self, judges, member):
        self.judges, self.member, self.columns = judges, member, judges.columns

    def __len__(self):
        return 1

    def decide(self, member, rows):
        return self.judges.decide(self.member, rows)


@dataclass(frozen=True, eq=False)
class Advised:
    """Records of a pool of people under an advisor, and for each row whether the plan fails each of
    several models.

    ``judged`` has, for each share, an array (judges, rows); ``next_models`` is (next models, rows).
    NaN: no plan.
    """

    records: Records
    judged: dict[float, np.ndarray]
    next_models: np.ndarray

    def risk(self, failed, target, tau):
        """The risk at some thresholds of a random person before a random one of these models."""
        curve = trace(
            Runs.from_records(replace(self.records, loss=np.nan_to_num(failed.mean(axis=0)))),
            target,
        )
        return curve.risk[curve.index(tau)]

    def calibration(self, share, people, random):
        """Records of some of the people, with a judge drawn for each of them."""
        steps = np.bincount(self.records.code)
        begins = np.cumsum(steps) - steps
        rows = np.concatenate([np.arange(begins[p], begins[p] + steps[p]) for p in people])
        owner = np.repeat(np.arange(len(people)), steps[people])
        judge = random.integers(JUDGES, size=len(people))[owner]
        columns = {
            n: getattr(self.records, n)[rows] for n in ("seed", "step", "spent", "signal", "legal")
        }
        return replace(
            self.records,
            person=owner,
            loss=self.judged[share][judge, rows],
            refused=None,
            wasted=None,
            **columns,
        )


def advise(seed, *, size=1200, pool=900, next_models=12):
    """Make an advisor from ``size`` people, run ``pool`` others through it, and ask everybody's
    judges.
    """
    train = edfa.Table.from_frame(sample(size, seed, 0), schema(), shares=(1.0, 0.0, 0.0)).train
    model = edfa.SubsetXGB(n_estimators=TREES).fit(train.X, train.y)
    choosing = Committee.of(train.X, train.y, model, 6, seed=0)
    searcher = edfa.SurvivalSearch(
        train, n_completions=8, n_candidates=12, committee=choosing, max_changes=2
    )
    others = replace(train, frame=sample(pool, seed, 1))
    plans = edfa.find_recourse(
        edfa.acquire(others, EDFA(BLANKET), model, budget="inf"), searcher, desired_class=1
    )
    options = {"signal": "survival", "loss": "let_down", "advisor": "A"}

    def ask(judges):
        each = (One(judges, member) for member in range(len(judges)))
        return np.array(
            [
                replay(plans, against=Against("retrained", judges=one), **options).loss
                for one in each
            ]
        )

    judged = {}
    for share in SHARES:
        judged[share] = ask(Committee.of(train.X, train.y, model, JUDGES, seed=1, share=share))
    return Advised(replay(plans, **options), judged, ask(Fresh(train, seed, next_models)))
