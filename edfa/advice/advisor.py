"""The advisor: fitted once on a table, it interviews anyone, hands out plans, and says when they
may act.

``Advisor`` is the main entry of the library: ``fit`` or ``load``, then ``interview``, or
``edfa.advice.batch_file.advise_file`` for a file of people.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from sklearn.base import BaseEstimator, clone

from edfa.acquisition.base import Policy
from edfa.acquisition.loop import Budget
from edfa.advice import persist
from edfa.advice.calibration_people import CalibrationPeople
from edfa.advice.evaluation import evaluate
from edfa.advice.factory import (
    Threshold,
    add_committee,
    blanket_of_model,
    check_settings,
    keep_path,
    new_policy,
    new_predictor,
    policy_and_signal,
)
from edfa.advice.fitted import (
    Ending,
    FittedAdvisor,
    Promise,
    check_group,
    identify_advisor,
    sweep_directions,
)
from edfa.advice.interview import Interview
from edfa.advice.on_workers import Cluster, roll_out_remote
from edfa.advice.promise import (
    certify_people,
    choose_reference,
    dry_run,
    learn_judges,
    roll_out,
    with_outlook,
)
from edfa.advice.receipt import Receipt, Verification
from edfa.advice.verify import verify
from edfa.artifacts import MANIFEST, readable
from edfa.blanket.discovery import discover
from edfa.blanket.units import Blanket
from edfa.certification.bounds import check_level
from edfa.certification.certificate import Certificate, GroupCertificates
from edfa.certification.endings import LOSS_OF
from edfa.certification.rcps import RecourseCertifier
from edfa.certification.records import PLAN_LOSSES, REFERENCES, Loss, Reference
from edfa.certification.risk_curve import Target
from edfa.data.rules import NO_RULES, Overlay, Rules
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.errors import DataError, MismatchError, SettingError, check_known
from edfa.predictors.base import Predictor, UnfittedError
from edfa.predictors.monotone import DirectionCheck
from edfa.predictors.user_model.fidelity import Fidelity
from edfa.predictors.user_model.usage import UsageReport
from edfa.reading import check_seed
from edfa.recourse import SEARCHERS
from edfa.recourse.searcher import Searcher
from edfa.text import summaries

STAGES = ("blanket", "model", "policy", "calibration", "test")
Progress = Callable[[str, int, int], None]


class Advisor(BaseEstimator):  # type: ignore[misc]
    """Everything fitted together: what to ask, what to change, when to act.

    Parameters
    ----------
    blanket, predictor, policy, searcher
        Names, or objects: a ``Blanket``; a model, which is fitted anew on the training part; a
        policy; a searcher. The model ``"xgb"`` is a ``SubsetXGB`` of mode "mixed": sets of known
        features on the policy's path have models of their own, one masked model answers for all
        others. The policy goes with the searcher unless it is given: advice that lasts, or with
        ``searcher="nearest"`` the paper's recipe.
    signal
        What the stop rule watches: ``"uncertainty"``, ``"plan"``, or with ``searcher="survival"``
        ``"help"`` and ``"survival"``. It goes with the searcher and the loss unless it is given.
    alpha, delta
        The promise: of people who are told to act, at most a share alpha act in vain; this, and
        what is promised about the other endings, is wrong with probability delta.
    alpha_granted
        Of people who are told that they are granted, at most this share are refused in the end.
    alpha_nothing
        Of people who are told that nothing helps, at most this share are granted, or have a plan,
        in the end.
    loss
        What counts as a broken promise: to act ``"in_vain"`` (the plan is followed and the person
        is still refused, or would be granted without it); to be ``"let_down"`` (still refused);
        or the paper's ``"recourse"``. With the last two, people are told to act and nothing else.
    target
        With the losses ``"let_down"`` and ``"recourse"``, whom the promise is about: people who act
        ``"early"`` (and with them all who are told to act), all who are told to ``"act"``,
        ``"all"`` who have a plan, or those ``"refused"``.
    reference
        By whom they are not refused: the advisor's model when everything that it asks is known
        (``"trajectory_end"``), the model that sees all features (``"all_features"``), or a model
        learnt again from other people (``"retrained"``). ``"auto"`` takes the strongest (in the
        order retrained, all features, trajectory end) that costs at most 1.25 times the cheapest,
        as training people suggest.
    committee
        The number of models, learnt again from resampled training people, that have a say in which
        plan survives (with ``searcher="survival"``); 0: the model alone.
    min_survival
        Nobody is told to act on a plan whose estimated survival (with the signal ``"survival"``),
        or probability to help (``"help"``), is below this.
    max_excess
        Nobody is told to act while questions are left and their plan is likelier than this to take
        more than 1.5 times the effort of the one that they would have in the end (with the signal
        ``"help"``, unless the card's ``effort_per_price`` is 0).
    budget
        What one interview may cost; a share up to 1, an amount, or ``"inf"``.
    threshold
        The chance of the favourable class that is needed; ``"balanced"`` decides for it when it is
        likelier than among training people; without one, the likeliest class wins.
    obey_directions
        Whether the model obeys the directions of the card; a model with directions of its own keeps
        those.
    rules
        The operator's rules, on top of the card's: what no plan may propose, and what nobody is
        asked. They hold in calibration, evaluation, interviews and files alike.
        ``Rules(reading="paper")`` is the paper's recipe.
    groups
        A categorical or ordinal feature of the card, such as ``"sex"``: each group of people then
        has a certificate from its own people alone, or none. The model is shown the feature only
        where the blanket has it, and no plan changes it.

    Examples
    --------
    >>> import edfa
    >>> advisor = Advisor(predictor=edfa.SubsetXGB(n_estimators=20)).fit(edfa.load("german"))
    >>> advisor.interview({"age": 35}).question.cost
    2.0
    """

    def __init__(
        self,
        blanket: str | Blanket = "hiton-mb",
        predictor: str | Predictor = "xgb",
        policy: str | Policy | None = None,
        searcher: str | Searcher = "survival",
        signal: str | None = None,
        alpha: float = 0.2,
        delta: float = 0.05,
        alpha_granted: float = 0.05,
        alpha_nothing: float = 0.1,
        loss: Loss = "in_vain",
        target: Target = "early",
        reference: Reference | Literal["auto"] = "auto",
        committee: int = 12,
        min_survival: float = 0.5,
        max_excess: float = 0.2,
        budget: Budget = "inf",
        threshold: Threshold = None,
        seed: int = 0,
        obey_directions: bool = True,
        rules: Rules | None = None,
        groups: str | None = None,
    ) -> None:
        self.blanket = blanket
        self.predictor = predictor
        self.policy = policy
        self.searcher = searcher
        self.signal = signal
        self.alpha = alpha
        self.delta = delta
        self.alpha_granted = alpha_granted
        self.alpha_nothing = alpha_nothing
        self.loss = loss
        self.target = target
        self.reference = reference
        self.committee = committee
        self.min_survival = min_survival
        self.max_excess = max_excess
        self.budget = budget
        self.threshold = threshold
        self.seed = seed
        self.obey_directions = obey_directions
        self.rules = rules
        self.groups = groups
        self._check()

    def _check(self) -> None:
        """Refuse settings that nobody could fit with, before any work is spent."""
        check_seed(self.seed)
        anchor = 0.0 if self.target in ("early", "act") else None
        RecourseCertifier(self.alpha, self.delta, target=self.target, anchor=anchor)
        for name in ("alpha_granted", "alpha_nothing"):
            check_level(name, getattr(self, name))
        check_known("loss", self.loss, PLAN_LOSSES)
        if self.loss == "in_vain" and self.target != "early":
            raise SettingError(
                f"target={self.target!r} goes with loss='let_down' or 'recourse'; the endings of "
                "loss='in_vain' are promised to those who are told so"
            )
        if self.committee and self.committee < 2:
            raise SettingError(f"committee: 0, or at least 2 models, not {self.committee!r}")
        for name in ("min_survival", "max_excess"):
            if not 0 <= getattr(self, name) <= 1:
                raise SettingError(f"{name}: a share from 0 to 1, not {getattr(self, name)!r}")
        check_settings(self.get_params(deep=False))
        if not isinstance(self.rules, Rules | None):
            raise SettingError(f"rules: Rules(...) or None, not {self.rules!r}")

    def fit(
        self, table: Table, progress: Progress | None = None, n_jobs: int | None = -1
    ) -> "Advisor":
        """Split, find the blanket, fit, certify on the calibration part, and measure itself on the
        test part.

        Parts that were passed as objects are cloned and fitted on the training part.

        Parameters
        ----------
        table
            A whole table, which the advisor splits by the table's own seed and shares.
        progress
            Called with the stage (one of ``STAGES``), what is done of it and what there is to do.
        n_jobs
            Threads that share the search for plans.

        Returns
        -------
        Advisor
            Itself. ``fitted`` holds what was learnt, ``certificate`` (or ``certificates`` of
            groups) the promise, and ``evaluation_`` how it did on the test part.

        Raises
        ------
        DataError
            If the table is a part of another one, a part of it is empty, or no feature tells
            anything about the outcome.
        SettingError, SchemaError
            If a setting does not fit the card, or rules leave nothing to change.
        """
        self._check()
        report = progress or (lambda stage, done, total: None)
        if table.part != "all":
            raise DataError(
                "an advisor is fitted on a whole table, which it splits; this is a "
                f"{table.part} part"
            )
        # An empty one is an error at once.
        train, calibration, test = table.train, table.calibration, table.test
        settings = (self.predictor, table, self.threshold, self.seed)
        unfitted = new_predictor(*settings, obey_directions=self.obey_directions)
        rules = self._rules(table.schema)
        everybody = table.schema.rules_with(rules)
        everybody.check(table.schema, train.encoder)
        everybody.check_leaves_something(table.schema)
        blanket = self._find_blanket(table, report)
        report("model", 0, 1)
        model = unfitted.fit_table(train)
        fit_parts = partial(self._fit_parts, train, model, blanket, n_jobs=n_jobs, report=report)
        reference = self.reference if model.refits else "all_features"
        fitted = fit_parts(all_features=reference == "all_features")
        judges = None
        if reference in ("auto", "retrained"):
            judges = learn_judges(fitted, calibration, self.seed)
        fitted = replace(fitted, judges=judges, calibration=calibration.X)
        tried = REFERENCES if reference == "auto" else [reference]
        dry = dry_run(fitted, self.seed, n_jobs, tried)
        if reference == "auto":
            reference = choose_reference(fitted, dry, len(calibration))
            if reference == "all_features":
                # Which plans survive is then asked of the model that sees all of them.
                fitted = fit_parts(all_features=True)
                fitted = replace(fitted, judges=judges, calibration=calibration.X)
                dry = dry_run(fitted, self.seed, n_jobs, [reference])
        fitted = with_outlook(replace(fitted, promise=replace(fitted.promise, reference=reference)))
        fitted = replace(fitted, fingerprint=identify_advisor(fitted))
        model.remember(test.X, test.frame)
        people = CalibrationPeople.of(calibration, fitted)
        records = roll_out(fitted, people.X, partial(report, "calibration"), n_jobs).endings
        self.fitted_ = certify_people(fitted, people, records, dry[reference])
        rollout = roll_out(self.fitted, test.X, partial(report, "test"), n_jobs)
        self.evaluation_ = evaluate(self.fitted, test, rollout)
        return self

    def _fit_parts(
        self,
        train: Table,
        model: Predictor,
        blanket: Blanket,
        *,
        all_features: bool,
        n_jobs: int | None,
        report: Progress,
    ) -> FittedAdvisor:
        """Fit searcher and policy to a fitted model.

        Parameters
        ----------
        train, model, blanket
            The training part, the fitted model, and the blanket of the outcome.
        all_features
            Whether plans should survive before the model that sees all features, too.
        n_jobs, report
            As for ``fit``.
        """
        report("policy", 0, 1)
        rules = self._rules(train.schema)
        given = None if rules == NO_RULES else rules
        named = isinstance(self.searcher, str)
        searcher = SEARCHERS[self.searcher]() if named else clone(self.searcher)
        usual_policy, usual_signal = policy_and_signal(self.searcher)
        asked, usage = blanket, model.usage_
        if usage is not None:
            asked = blanket_of_model(usage, blanket, train.schema)
        chosen = self.policy or usual_policy
        policy = new_policy(chosen, asked, searcher, train.schema, given, self.loss)
        settings: dict[str, Any] = {"all_features": all_features, "seed": self.seed}
        add_committee(searcher, policy, train, model, self.committee, **settings)
        searcher.fit(train)
        if not model.refits:
            policy.set_params(aligned=False)
        policy.fit(
            train, model.acquisition_model, n_jobs=n_jobs, progress=partial(report, "policy")
        )
        model = keep_path(model, policy, searcher, self.budget, given, self.seed)
        fitted = replace(
            FittedAdvisor.of(train, model, blanket, policy, searcher),
            budget=self.budget,
            operator_rules=rules,
            promise=Promise(
                self._endings(usual_signal),
                self.delta,
                min_survival=self.min_survival,
                max_excess=self.max_excess,
                groups=self.groups,
            ),
        )
        return replace(fitted, directions=sweep_directions(fitted))

    def _endings(self, usual_signal: str) -> tuple[Ending, ...]:
        """The endings that are promised; the signal of plans that goes with the searcher."""
        if usual_signal == "survival" and self.loss == "in_vain":
            usual_signal = "help"
        act = Ending("act", self.signal or usual_signal, self.loss, self.target, self.alpha)
        if self.loss != "in_vain":
            return (act,)
        granted = Ending("granted", "chance", LOSS_OF["granted"], alpha=self.alpha_granted)
        nothing = Ending("nothing", "no_way", LOSS_OF["nothing"], alpha=self.alpha_nothing)
        return granted, act, nothing

    def _rules(self, schema: Schema) -> Rules:
        """The operator's rules; who is in a group stays in it, whatever they do."""
        rules = self.rules or NO_RULES
        if self.groups is None:
            return rules
        check_group(self.groups, schema)
        feature = schema[self.groups]
        stays = feature.sensitive or (feature.change == "frozen" and rules.reading == "card")
        return rules if stays else rules.tighten(Rules(locked=(self.groups,)))

    def _find_blanket(self, table: Table, report: Progress) -> Blanket:
        """The policy's own blanket, the one that was given, or the one of the training part; a
        DataError if that is empty and no user model decides.
        """
        if isinstance(self.policy, Policy) and self.policy.blanket is not None:
            return self.policy.blanket
        if isinstance(self.blanket, Blanket):
            return self.blanket
        method: Any = self.blanket
        blanket = discover(table.train, method, progress=partial(report, "blanket"))
        learnt = isinstance(self.predictor, str) or self.predictor.refits
        if not len(blanket) and learnt:
            raise DataError(
                f"no feature tells anything about {table.schema.target!r}; there is "
                "nothing to advise on"
            )
        return blanket

    @property
    def fitted(self) -> FittedAdvisor:
        """Everything that was learnt; UnfittedError before ``fit``."""
        if not hasattr(self, "fitted_"):
            raise UnfittedError("this advisor has learnt nothing yet; call fit(table) first")
        return self.fitted_

    @property
    def directions_(self) -> DirectionCheck | None:
        """How a model that takes the card's directions as a penalty keeps to them; None: exactly,
        or it has none.
        """
        return self.fitted.directions

    @property
    def fidelity_(self) -> Fidelity | None:
        """How near what is said before everything is known comes to a user model, on
        the test people.
        """
        return self.evaluation_.fidelity

    @property
    def usage_(self) -> UsageReport | None:
        """What a user model uses, beside the outcome's blanket; None for any other
        model.
        """
        fitted, model = self.fitted, self.fitted.model
        if model.usage_ is None:
            return None
        return UsageReport(model.usage_, fitted.blanket, self.schema.names)

    @property
    def schema(self) -> Schema:
        """The features."""
        return self.fitted.schema

    @property
    def certificate(self) -> Certificate:
        """From when on a person may act, and what that promises; or why there is no such
        promise. MismatchError for an advisor with groups.
        """
        made = self._certified()
        if isinstance(made, GroupCertificates):
            groups = self.fitted.promise.groups
            raise MismatchError(
                f"this advisor has a certificate for each {groups}; read certificates"
            )
        return made

    @property
    def certificates(self) -> GroupCertificates:
        """The certificate of each group of people; MismatchError for an advisor without groups."""
        made = self._certified()
        if not isinstance(made, GroupCertificates):
            raise MismatchError(
                "this advisor has one certificate for everybody; Advisor(groups=...) makes groups"
            )
        return made

    @property
    def endings(self) -> dict[str, Certificate | GroupCertificates]:
        """What is promised about each ending of an interview, by its name; all of it holds together
        with probability 1 - delta.
        """
        self._certified()
        promise = self.fitted.promise
        return {e.name: e.certificate for e in promise.endings if e.certificate is not None}

    def _certified(self) -> Certificate | GroupCertificates:
        made = self.fitted.promise.certificate
        if made is None:
            raise UnfittedError("this advisor has no certificate yet; call certify(people) first")
        return made

    @property
    def fingerprint(self) -> str:
        """One word for the model, the card, the rules, the blanket, the policy, the searcher and
        the signal: see ``edfa.advice.fitted.identify_advisor``.
        """
        return self.fitted.fingerprint

    def certify(
        self,
        people: Any,
        progress: Progress | None = None,
        n_jobs: int | None = -1,
        *,
        scheduler: str | None = None,
        folder: str | Path | None = None,
    ) -> Certificate | GroupCertificates:
        """Certify on people who took no part in fitting.

        The certificate replaces the one there is; two looks at different people promise less than
        one. It speaks of plans under the operator's rules, and says how many people have a number
        beyond what training people showed. ``alpha``, ``delta`` and ``target`` are those of the
        advisor as they are set now.

        Parameters
        ----------
        people
            A table, a frame (no outcome is needed), or encoded rows, (people, features).
        progress, n_jobs
            As for ``fit``.
        scheduler
            The address of a Dask scheduler, whose workers share the people; the certificate is the
            same.
        folder
            The folder that this advisor is saved in; workers that can read it need not be sent the
            advisor.

        Returns
        -------
        Certificate or GroupCertificates
            With groups, one for each group of these people.

        Raises
        ------
        DataError
            If somebody is not known well enough, or these are the training people.
        """
        report, promise = progress or (lambda stage, done, total: None), self.fitted.promise
        endings = self._endings(promise.ending.signal)
        promise = replace(promise, endings=endings, delta=self.delta)
        fitted = replace(self.fitted, promise=promise)
        calibration = CalibrationPeople.of(people, fitted)
        reference, steps = promise.reference, partial(report, "calibration")
        dry = dry_run(fitted, self.seed, n_jobs, [reference])[reference]
        if scheduler is None:
            records = roll_out(fitted, calibration.X, steps, n_jobs).endings
        else:
            cluster = Cluster(scheduler, folder)
            records = roll_out_remote(fitted, calibration.X, cluster, steps)
        self.fitted_ = certify_people(fitted, calibration, records, dry)
        return self._certified()

    def interview(
        self,
        facts: Mapping[str, Any] | None = None,
        *,
        overlay: Overlay | None = None,
        language: str = "en",
    ) -> Interview:
        """Begin an interview with what is known of a person.

        Parameters
        ----------
        facts
            Values by feature name; anything may be left out.
        overlay
            The person's prices, locks and limits; one that loosens the operator's rules is a
            ``SettingError``.
        language
            ``"en"`` or ``"de"``.

        Raises
        ------
        FactError
            If a value cannot be understood.
        """
        return Interview(self.fitted, overlay=overlay, language=language).begin(facts or {})

    def verify(self, receipt: Receipt | str, key: bytes | None = None) -> Verification:
        """Replay a receipt's interview, and say what differs.

        Parameters
        ----------
        receipt
            The receipt, or its JSON.
        key
            The operator's key, with which the signature is checked.
        """
        return verify(self.fitted, receipt, key)

    def _repr_html_(self) -> str:
        """The settings, and what was learnt, as a sheet for notebooks."""
        settings = {name: str(value) for name, value in self.get_params(deep=False).items()}
        settings["rules"] = "; ".join((self.rules or NO_RULES).describe()) or "none"
        if not hasattr(self, "fitted_"):
            return summaries.advisor_html(settings)
        certificate = self.fitted.promise.certificate
        return summaries.advisor_html(
            settings,
            fingerprint=self.fingerprint,
            certificate=certificate.sentence if certificate else "",
            evaluation=str(self.evaluation_) if hasattr(self, "evaluation_") else "",
            blanket=", ".join(self.fitted.blanket.features),
        )

    def save(self, folder: str | Path) -> None:
        """Write everything into a folder: JSON, safetensors, UBJSON, Parquet, with hashes. All of
        it or nothing.

        Parameters
        ----------
        folder
            A new folder, or one that holds an advisor, which is replaced.
        """
        promise = self.fitted.promise
        plain = {f.name: getattr(self, f.name) for f in fields(persist.PlainSettings)} | {
            **{persist.ALPHAS[ending.name]: ending.alpha for ending in promise.endings},
            "loss": promise.ending.loss,
            "delta": promise.delta,
            "target": promise.ending.target,
        }
        settings = persist.PlainSettings(**plain)
        persist.save(self.fitted, settings, getattr(self, "evaluation_", None), folder)

    @classmethod
    def load(cls, folder: str | Path, *, model: Any = None) -> "Advisor":
        """Read what ``save`` wrote; runs no code from the folder, and refuses one that was changed.

        Parameters
        ----------
        folder
            The folder of a saved advisor.
        model
            The user model that the advisor was made for, where it is in no file, such as a
            function.

        Raises
        ------
        UnreadableError
            If it holds no whole advisor.
        """
        fitted, settings, evaluation = persist.load(folder, model)
        parts: dict[str, Any] = {
            "policy": fitted.policy,
            "searcher": fitted.searcher,
            "rules": None if fitted.operator_rules == NO_RULES else fitted.operator_rules,
        }
        with readable(f"{folder}: its {MANIFEST}"):
            advisor = cls(fitted.blanket, fitted.model, **parts, **asdict(settings))
        advisor.fitted_ = fitted
        if evaluation is not None:
            advisor.evaluation_ = evaluation
        return advisor
