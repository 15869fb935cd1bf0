"""The advisor: fitted once on a table, it interviews anyone, hands out plans, and says when they may act."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from edfa.acquisition.base import Policy
from edfa.advice.answer_log import Event
from edfa.advice.assessment import Budget, Fitted
from edfa.advice.evaluation import AdvisorEvaluation, complete, examine, run
from edfa.advice.factory import (
    SEARCHER,
    Threshold,
    check_names,
    make_policy,
    make_predictor,
    make_searcher,
    suits,
)
from edfa.advice.interview import Interview
from edfa.advice.receipt import Difference, Receipt, Verification, versions
from edfa.blanket.discovery import discover
from edfa.blanket.units import Blanket
from edfa.certification.certificate import Certificate
from edfa.certification.rcps import RecourseCertifier
from edfa.certification.risk_curve import Target
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.errors import DataError, EdfaError
from edfa.fingerprint import digest, fingerprint
from edfa.parsing import checked
from edfa.predictors.base import Predictor, UnfittedError
from edfa.recourse.constraints import Constraints
from edfa.recourse.searcher import Searcher

__all__ = ["STAGES", "Advisor"]

STAGES = ("blanket", "model", "policy", "calibration", "test")
Progress = Callable[[str, int, int], None]
ANCHORS = 1_000  # training people on whom the start of an early walk is fixed
REPLAYED = (
    "facts",
    "unknown",
    "declined",
    "spent",
    "decision",
    "question",
    "plans",
    "no_plan",
    "standing",
    "certificate",
)


@dataclass(eq=False)
class Advisor:
    """Everything fitted together: what to ask, what to change, when to act.

    Parameters
    ----------
    blanket, predictor, policy, searcher
        Names, or objects: a ``Blanket``; a model, which is fitted anew on the training part; a policy; a searcher.
        The policy goes with the searcher unless it is given: advice that lasts, or with ``searcher="nearest"`` the
        paper's recipe.
    signal
        What the stop rule watches: ``"uncertainty"``, ``"plan"``, or with ``searcher="survival"`` ``"survival"``. It
        goes with the searcher unless it is given.
    alpha, delta
        The certificate: at most a share alpha of plans fails, and this is wrong with probability delta.
    target
        Whom the certificate speaks of; ``"early"`` fixes where its walk starts on training people.
    budget
        What one interview may cost; a share up to 1, an amount, or ``"inf"``.
    threshold
        The chance of the favourable class that is needed; ``"balanced"`` decides for it when it is likelier than
        among training people; without one, the likeliest class wins.

    Examples
    --------
    >>> import edfa
    >>> advisor = Advisor(predictor=edfa.SubsetXGB(n_estimators=20)).fit(edfa.load("german"))
    >>> advisor.interview({"age": 35}).question.cost
    2.0
    """

    blanket: str | Blanket = "hiton-mb"
    predictor: str | Predictor = "xgb"
    policy: str | Policy = ""
    searcher: str | Searcher = SEARCHER
    signal: str = ""
    alpha: float = 0.2
    delta: float = 0.05
    target: Target = "all"
    budget: Budget = "inf"
    threshold: Threshold = None
    seed: int = 0
    fitted_: Fitted = field(init=False, repr=False)
    evaluation_: AdvisorEvaluation = field(init=False, repr=False)

    def __post_init__(self) -> None:
        anchor = 0.0 if self.target == "early" else None
        RecourseCertifier(self.alpha, self.delta, target=self.target, anchor=anchor)  # refuses what is no level
        policy, signal = suits(self.searcher)
        self.policy, self.signal = self.policy or policy, self.signal or signal
        chosen = {name: getattr(self, name) for name in ("predictor", "policy", "searcher", "signal", "threshold")}
        check_names(method=self.blanket, **chosen)

    def fit(self, table: Table, progress: Progress | None = None, n_jobs: int | None = -1) -> "Advisor":
        """Split, find the blanket, fit, certify on the calibration part, and measure itself on the test part.

        ``progress`` is told the stage (one of ``STAGES``), what is done of it and what there is to do. ``n_jobs``
        threads share the search for plans.
        """
        tell = progress or (lambda stage, done, total: None)
        if table.part != "all":
            raise DataError(f"an advisor is fitted on a whole table, which it splits; this is a {table.part} part")
        train, calibration, test = table.train, table.calibration, table.test  # an empty one is an error at once
        blanket = self._find_blanket(table, tell)
        tell("model", 0, 1)
        predictor = make_predictor(self.predictor, table, self.threshold, self.seed)
        tell("policy", 0, 1)
        searcher = make_searcher(self.searcher, table)
        learning = partial(tell, "policy")
        policy = make_policy(self.policy, blanket, searcher, predictor, progress=learning, n_jobs=n_jobs)
        fitted = Fitted.of(train, predictor, blanket, policy, searcher)
        fitted = replace(fitted, signal=self.signal, budget=self.budget)
        self.fitted_ = replace(fitted, fingerprint=_fingerprint(fitted))
        self.certify(calibration.X, progress=tell, n_jobs=n_jobs)
        found = run(self.fitted, test.X, lambda done, total: tell("test", done, total), n_jobs)
        self.evaluation_ = examine(self.fitted, test, found)
        return self

    def _find_blanket(self, table: Table, tell: Progress) -> Blanket:
        if isinstance(self.policy, Policy) and self.policy.blanket is not None:
            return self.policy.blanket
        if isinstance(self.blanket, Blanket):
            return self.blanket
        method: Any = self.blanket
        blanket = discover(table.train, method, progress=lambda done, total: tell("blanket", done, total))
        if not len(blanket):
            raise DataError(f"no feature tells anything about {table.schema.target!r}; there is nothing to advise on")
        return blanket

    @property
    def fitted(self) -> Fitted:
        """What was learnt."""
        if not hasattr(self, "fitted_"):
            raise UnfittedError("this advisor has learnt nothing yet; call fit(table) first")
        return self.fitted_

    @property
    def schema(self) -> Schema:
        """The features."""
        return self.fitted.schema

    @property
    def certificate(self) -> Certificate:
        """From when on a person may act, and what that promises; or why there is no such promise."""
        found = self.fitted.certificate
        if found is None:
            raise UnfittedError("this advisor has no certificate yet; call certify(people) first")
        return found

    @property
    def fingerprint(self) -> str:
        """One word for the model, the blanket, the policy, the prices, the searcher and the signal."""
        return self.fitted.fingerprint

    def certify(self, people: Any, progress: Progress | None = None, n_jobs: int | None = -1) -> Certificate:
        """Certify on people who took no part in fitting: a table, a frame (no outcome is needed), or encoded rows.

        The certificate replaces the one there is; two looks at different people promise less than one.
        """
        fitted, tell = self.fitted, progress or (lambda stage, done, total: None)
        rows = complete(people, fitted)
        found = run(fitted, rows, lambda done, total: tell("calibration", done, total), n_jobs)
        anchor = self._anchor(n_jobs) if self.target == "early" else None
        certifier = RecourseCertifier(self.alpha, self.delta, target=self.target, anchor=anchor)
        self.fitted_ = replace(fitted, certificate=certifier.one(found.records))
        return self.certificate

    def _anchor(self, n_jobs: int | None) -> float:
        """Where the walk of early stoppers starts: the lowest tenth of training people's signals."""
        some = np.random.default_rng(self.seed).permutation(len(self.fitted.train))[:ANCHORS]
        records = run(self.fitted, self.fitted.train.X[np.sort(some)], n_jobs=n_jobs).records
        if not records.legal.any():
            raise DataError("target='early' needs training people with a plan; nobody has one")
        return float(np.quantile(records.signal[records.legal], 0.1))

    def interview(
        self,
        facts: Mapping[str, Any] | None = None,
        *,
        costs: Mapping[str, float] | None = None,
        locks: Sequence[str] = (),
        language: str = "en",
    ) -> Interview:
        """Begin with what is known of a person; prices and what must not change may be their own."""
        return Interview(self.fitted, costs=costs, locks=tuple(locks), language=language).begin(facts or {})

    def verify(self, receipt: Receipt | str, key: bytes | None = None) -> Verification:
        """Replay a receipt's interview, and say what differs; with the operator's key, whether it is as it was."""
        told = Receipt.from_json(receipt) if isinstance(receipt, str) else receipt
        signature = "none" if not told.signed else "not checked" if key is None else _right(told, key)
        if told.advisor != self.fingerprint:
            return Verification(signature, False, (Difference("advisor", told.advisor, self.fingerprint),))
        try:
            given = None if told.constraints is None else Constraints.from_json(json.dumps(told.constraints))
            held = Interview(self.fitted, costs=told.costs, locks=told.locks, language=told.language)
            held.replay(checked(Event, event, "events") for event in told.events)
            today = held.receipt(k=told.k, constraints=given, chosen=None, time=told.time)
        except (EdfaError, KeyError, TypeError) as error:
            return Verification(signature, True, (Difference("events", "as told", str(error)),))
        parts = [(name, getattr(told, name), getattr(today, name)) for name in REPLAYED]
        differs = [Difference(*part) for part in parts if part[1] != part[2]]
        if told.chosen is not None and told.chosen not in [plan["id"] for plan in today.plans]:
            differs.append(Difference("chosen", told.chosen, None))
        return Verification(signature, True, tuple(differs))

    def save(self, folder: str | Path) -> None:
        """Write everything into a folder: JSON, safetensors, UBJSON, Parquet, with hashes. All of it or nothing."""
        from edfa.advice.persist import save

        save(self, folder)

    @classmethod
    def load(cls, folder: str | Path) -> "Advisor":
        """Read what ``save`` wrote; runs no code from the folder, and refuses one that was changed."""
        from edfa.advice.persist import load

        return load(folder)


def _right(receipt: Receipt, key: bytes) -> str:
    return "right" if receipt.right(key) else "wrong"


def _fingerprint(fitted: Fitted) -> str:
    """Any change of model, card, blanket, policy, searcher, signal, budget or library version changes it."""
    learnt = {"model": fitted.model, "blanket": fitted.blanket, "policy": fitted.policy, "searcher": fitted.searcher}
    return fingerprint(
        **{name: digest(part) for name, part in learnt.items()},
        card=fitted.schema.to_json(),
        watched=f"{fitted.signal} {fitted.budget} {fitted.model.threshold}",
        versions=str(versions()),
    )
