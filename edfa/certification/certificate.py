"""Certificates: from which threshold on a person may act early, what that promises, and to whom; as
records, as JSON, and in the exact words for the record.

``Certificate`` is the main entry, ``GroupCertificates`` has one for each group. ``Guarantee`` is
what they share with the other promises: a sentence, JSON and a digest. A new loss needs a
section ``formal.<loss>`` in each language file.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from markupsafe import Markup

from edfa.certification.records import Loss, Records, Reference, Stops, stop_at
from edfa.certification.replay import SIGNALS, is_trajectory, watch
from edfa.certification.risk_curve import Target
from edfa.errors import DataError, MismatchError, SettingError, UnreadableError, check_known
from edfa.reading import parse, parse_object
from edfa.recourse.plans import Plans
from edfa.text import html
from edfa.text.phrases import listed, number, say

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def promise_in_words(
    language: str,
    loss: Loss,
    target: Target,
    reference: Reference,
    share: float,
    within: str = "",
) -> str:
    """What is promised, to whom, and against what, without a full stop.

    Parameters
    ----------
    language
        "en" or "de".
    loss, target, reference
        What counts as a failure, whom the promise is about, and what plans are held against; each
        has its words in the section ``formal.<loss>`` of the language file.
    share
        The largest share of people who fail.
    within
        The group of people, in words; empty: everybody.
    """
    section = f"formal.{loss}."
    whom, later = (say(section + name, language) for name in (target, reference))
    most = _digits(share, language)
    return say(f"{section}promise", language, within=within, whom=whom, share=most, later=later)


def _promise(certificate: "Certificate", language: str) -> str:
    """The promise and everything that qualifies it, as sentences."""
    c, more = certificate, dict[str, dict[str, str]]()
    promise = promise_in_words(
        language, c.loss, c.target, c.reference, c.alpha, _within(c, language)
    )
    if c.include_last_step and c.loss != "recourse":
        told = "_told" if c.loss in ("overturned", "missed") else ""
        more[f"include_last_step{told}"] = {}
    more["sure"] = {"delta": _digits(c.delta, language)}
    if c.family_delta is not None:
        del more["sure"]
        more["sure_together"] = {"delta": _digits(c.family_delta, language)}
    elif c.ceiling is not None and c.signal == "survival":
        more["survival_floor"] = {"least": _digits(1 - c.ceiling, language)}
    elif c.ceiling is not None:
        more["ceiling"] = {"most": _digits(c.ceiling, language)}
    if c.rules:
        more["rules"] = {"rules": listed(c.rules, language)}
    if c.model:
        more["model"] = {"model": c.model}
    for key, words in more.items():
        promise = say(f"formal.{key}", language, promise=promise, **words)
    return promise


def _within(certificate: "Certificate", language: str) -> str:
    group = certificate.group
    return "" if group is None else say("formal.within", language, group=group)


def _why_not(certificate: "Certificate", language: str) -> str:
    """Why nothing is promised, as a part of a sentence."""
    c = certificate
    if c.status == "undefined":
        key = "never" if c.loss in ("overturned", "missed") else "undefined"
        return say(f"formal.{key}", language, people=number(c.people, language))
    if not c.asked and c.target == "early":
        return say("formal.nothing_asked", language)
    people = number(c.n, language)
    if c.target in ("early", "act") and not c.risk and c.bound == 1:
        whom = say(f"formal.{c.loss}.{c.target}", language)
        key = "nobody_told" if c.loss in ("overturned", "missed") else "nobody"
        return say(f"formal.{key}", language, whom=whom, n=people)
    # whichever of the two stands in the way, it is not the smaller
    risk = max(c.risk or 0.0, c.act_risk or 0.0)
    seen = say("formal.seen", language, risk=_digits(risk, language), n=people)
    more = "" if c.n_more is None else number(c.n_more, language)
    key = "risk_limited" if c.status == "risk_limited" else "data_limited" if more else "too_near"
    return say(f"formal.{key}", language, seen=seen, share=_digits(c.alpha, language), more=more)


def _digits(value: float, language: str) -> str:
    return number(float(f"{value:.4g}"), language)


Status = Literal["certified", "data_limited", "risk_limited", "undefined"]
VERSION = 1


class Guarantee(ABC):
    """Base of the dataclasses that promise something: a sentence in words, and JSON that brings the
    object back.

    ``kind`` is what error messages call it.
    """

    kind: ClassVar[str] = "certificate"

    @property
    @abstractmethod
    def sentence(self) -> str:
        """What is promised, in words; or why nothing is."""

    def __str__(self) -> str:
        return self.sentence

    def to_json(self) -> str:
        """Write as JSON; ``from_json`` reads it back, equal.

        Infinite thresholds are the words inf and -inf. The version of the format comes first.
        """
        parts: Any = asdict(self)  # type: ignore[call-overload]
        return json.dumps(
            {"version": VERSION} | infinities_as_words(parts), ensure_ascii=False, allow_nan=False
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what ``to_json`` wrote.

        Raises
        ------
        UnreadableError
            If the text is anything else: no JSON, of another version, or with values that cannot
            be.
        """
        try:
            values = parse_object(text, f"the {cls.kind}")
            version = values.pop("version")
        except (UnreadableError, KeyError) as error:
            raise UnreadableError(
                f"this text is not a {cls.kind} as to_json writes it: {error}"
            ) from None
        if version != VERSION:
            raise UnreadableError(
                f"this {cls.kind} has version {version!r:.20}; this edfa reads version {VERSION}"
            )
        try:
            return parse(cls, values, cls.kind, UnreadableError)
        except SettingError as error:  # what its constructor refuses
            raise UnreadableError(f"this {cls.kind} is damaged: {error}") from None

    @cached_property
    def digest(self) -> str:
        """A short name of everything it says: SHA-256 of its JSON, 16 hexadecimal digits; equal
        ones have equal names.

        Receipts and monitors name the certificate that they belong to by it.
        """
        written = type(self).from_json(self.to_json()).to_json()  # 1 and 1.0 are written alike then
        return hashlib.sha256(written.encode()).hexdigest()[:16]

    def _repr_html_(self) -> str:
        return html.fragment(html.paragraph(self.sentence))


def infinities_as_words(value: Any) -> Any:
    """Plain data in which infinite thresholds, which JSON has not, are the words inf and -inf.

    >>> infinities_as_words({"tau": float("-inf"), "interval": (0.25, float("inf"))})
    {'tau': '-inf', 'interval': [0.25, 'inf']}
    """
    if isinstance(value, Mapping):
        return {name: infinities_as_words(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [infinities_as_words(inner) for inner in value]
    return str(value) if isinstance(value, float) and np.isinf(value) else value


@dataclass(frozen=True)
class Point:
    """One threshold: the observed risk, its upper bound and p-value, the share of runs it stops,
    and the mean cost.
    """

    tau: float
    risk: float
    bound: float
    p: float
    triggered: float
    cost: float


@dataclass(frozen=True)
class Certificate(Guarantee):
    """The result of a calibration; immutable.

    Parameters
    ----------
    status
        "certified"; "data_limited": more people could help; "risk_limited": they could not;
        "undefined": nobody has a plan.
    alpha, delta
        The risk is at most alpha, which is wrong with probability at most delta.
    method, target, anchor
        Settings of the certifier; ``method`` is the bound that was used.
    people, n
        Calibration people in all, and those of them with a plan.
    signal, reference, advisor, group
        What the rule watches, what plans were held against, whose runs these were, and the group of
        people.
    loss
        What counts as a failure: the paper's "recourse", or "let_down".
    ceiling, include_last_step
        The largest threshold that may be used; whether the promise to those who act early holds for
        all who act, too.
    tau
        The largest certified threshold: -inf means "never stop early", inf "stop at the first
        plan".
    interval
        The thresholds [low, high) that stop the calibration runs where ``tau`` does; up to the
        ceiling, included, where nothing else ends them.
    risk, bound, cost, triggered
        Observed risk, its upper bound, mean cost and share of stopped runs at ``tau``; where
        nothing is certified, those of the strictest rule.
    n_more
        Where nothing is certified: how many more people of the same kind it would take.
    complete
        Whether no threshold failed.
    curve
        The grid that was tested, or some 200 of all thresholds. The first point is the rule "stop
        at the last step", the last one "stop at the first plan".
    warnings
        What a reader of the certificate should know.
    rules
        The operator's rules that plans kept to, in short; the promise is about plans under them.
    moved
        How many calibration people have a number beyond what training people showed; it was taken
        at the edge.
    act_risk
        Where the risk is that of those who act early: the observed risk, at the same threshold, of
        all who are told to act, their last step included.
    wasted
        The share, of those whom the risk is about, who would be given the desired class without
        their plan; None where the records do not say so.
    asked
        Whether anybody was asked anything; else there is no acting early.
    model
        The user's own model that decides, and what spoke for it before everything was known; empty
        for any other.
    family_delta
        The probability that this or any of the certificates for other endings is wrong; None where
        there are no others.
    """

    status: Status
    alpha: float
    delta: float
    method: str
    target: Target
    people: int
    n: int
    signal: str = "uncertainty"
    reference: Reference = "trajectory_end"
    advisor: str = ""
    group: str | None = None
    anchor: float | None = None
    tau: float | None = None
    interval: tuple[float, float] | None = None
    risk: float | None = None
    bound: float | None = None
    cost: float | None = None
    triggered: float | None = None
    n_more: int | None = None
    complete: bool = False
    curve: tuple[Point, ...] = ()
    warnings: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    moved: int = 0
    loss: Loss = "recourse"
    ceiling: float | None = None
    include_last_step: bool = False
    act_risk: float | None = None
    wasted: float | None = None
    asked: bool = True
    model: str = ""
    family_delta: float | None = None

    @property
    def certified(self) -> bool:
        """Whether anything is promised."""
        return self.status == "certified"

    @property
    def zone(self) -> Status:
        """The paper's word for ``status``, and equal to it."""
        return self.status

    @property
    def left_out(self) -> int:
        """The number of people without a plan at any step, to whom nothing is promised."""
        return self.people - self.n

    @property
    def saved(self) -> float | None:
        """The share of the full cost that the certified rule saves on average; None if nothing is
        certified.
        """
        if not self.certified or self.cost is None or not self.curve[0].cost:
            return None
        return 1 - self.cost / self.curve[0].cost

    @property
    def sentence(self) -> str:
        """The guarantee in words; or why there is none."""
        return self.words()

    def words(self, language: str = "en") -> str:
        """The sentence in another language.

        Parameters
        ----------
        language
            "en" or "de".

        Returns
        -------
        str
            The guarantee in the exact words for the record, or why there is none;
            ``edfa.text.narrate.certificate`` says it to a person.
        """
        if self.certified:
            return _promise(self, language)
        why = _why_not(self, language)
        return say("formal.none", language, within=_within(self, language), why=why)

    def without_observations(self) -> "Certificate":
        """A copy without what was observed in one calibration sample, and where its tests began."""
        names = ("anchor", "interval", "risk", "bound", "cost", "triggered", "act_risk", "wasted")
        nothing: dict[str, Any] = dict.fromkeys(names)
        return replace(self, curve=(), **nothing)

    def stop(self, runs: Any, *, advisor: str = "") -> Stops:
        """Find where to stop each run.

        It reads the signal and whether there is a plan, never a loss or a later step.

        Parameters
        ----------
        runs
            Plans, records, or signals of shape (runs, steps), NaN at a step without a plan.
        advisor
            The fingerprint of the advisor of bare signals, or of plans in place of their own.

        Returns
        -------
        Stops
            Where each run stops; without a sentence if nothing is certified.

        Raises
        ------
        MismatchError
            If the runs are of another advisor or signal.
        """
        runs = runs_for(self, runs, advisor)
        # Not certified: Algorithm 2's strictest rule, and no guarantee with it.
        tau = -np.inf if self.tau is None else self.tau
        return stop_at(runs, tau, self.sentence if self.certified else "")

    def frame(self) -> pd.DataFrame:
        """The curve as a table, one row per threshold."""
        return pd.DataFrame(list(self.curve), columns=[field.name for field in fields(Point)])

    def draw(self, ax: "Axes") -> "Axes":
        """Draw risk and bound against the mean cost, with alpha and the certified rule.

        Parameters
        ----------
        ax
            The matplotlib axis to draw on; it is returned. The certificate must have a curve.
        """
        curve = self.frame()
        for name, style in (("bound", "--"), ("risk", "-")):
            ax.plot(curve["cost"], curve[name], style, color="black", lw=1.2, label=name)
        ax.axhline(self.alpha, color="black", ls=":", lw=1, label=f"alpha = {self.alpha:g}")
        if self.cost is not None and self.bound is not None and self.certified:
            ax.plot(self.cost, self.bound, "o", mfc="white", mec="black", label="certified rule")
        ax.set(xlabel="mean cost of a person", ylabel="share of people who fail")
        ax.set_ylim(0, min(1.02, max(2.5 * self.alpha, 1.1 * float(curve["risk"].max()))))
        ax.legend(frameon=False)
        return ax

    def _repr_html_(self) -> str:
        names = "zone tau risk bound alpha delta n people n_more cost method target".split()
        values = {name: getattr(self, name) for name in names}
        rows = [
            (name, f"{value:.4g}" if isinstance(value, float) else str(value))
            for name, value in values.items()
            if value is not None
        ]
        curve = Markup()
        if self.curve:
            curve = html.figure(self.draw, "Risk and its bound against the mean cost")
        return html.fragment(
            html.paragraph(self.sentence),
            curve,
            html.definition_table(rows),
            html.bullet_list(self.warnings),
        )


@dataclass(frozen=True)
class GroupCertificates(Guarantee, Mapping[str, Certificate]):
    """Certificates by group of people, each from its own people alone (Mondrian).

    A group that is not certified has no guarantee: it never borrows that of all people together.

    Parameters
    ----------
    certificates
        The certificate of each group, by its label.
    joint
        Whether the statements of all certified groups hold together with probability 1 - delta,
        rather than each by itself.
    """

    kind: ClassVar[str] = "certificate of groups"
    certificates: Mapping[str, Certificate]
    joint: bool = False

    def __getitem__(self, group: str) -> Certificate:
        check_known("group", str(group), self.certificates)
        return self.certificates[str(group)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.certificates)

    def __len__(self) -> int:
        return len(self.certificates)

    @property
    def sentence(self) -> str:
        """The groups' sentences, one per line."""
        return "\n".join(certificate.sentence for certificate in self.certificates.values())

    def stop(self, runs: Any, *, advisor: str = "") -> dict[str, Stops]:
        """Find where each group's own certificate stops its people.

        Parameters
        ----------
        runs
            Records with the column ``group``.
        advisor
            As in ``Certificate.stop``.

        Returns
        -------
        dict of str to Stops
            Where the runs of each group that is among the records stop.
        """
        records = runs_for(next(iter(self.certificates.values())), runs, advisor)
        return {label: self[label].stop(part) for label, part in by_group(records).items()}

    def _repr_html_(self) -> str:
        return "".join(certificate._repr_html_() for certificate in self.certificates.values())


def by_group(records: Any) -> dict[str, Records]:
    """Split records into those of each group, by its label.

    Raises
    ------
    DataError
        If the records have no groups, or are no records.
    """
    if not isinstance(records, Records) or records.group is None:
        raise DataError("certificates of groups need the column 'group' in the records")
    labels = pd.Series(records.group).astype(str)
    return {label: records.take((labels == label).to_numpy()) for label in sorted(labels.unique())}


def runs_for(certificate: Any, runs: Any, advisor: str = "") -> Any:
    """Return plans as records, and records or bare signals unchanged.

    Parameters
    ----------
    certificate
        Anything with the attributes ``signal`` and ``advisor``.
    runs, advisor
        As in ``Certificate.stop``.

    Raises
    ------
    MismatchError
        If the runs are of another advisor or signal.
    DataError
        If they are a trajectory, which has no plans yet.
    """
    if is_trajectory(runs):
        raise DataError(
            "a trajectory has no plans yet; pass find_recourse(trajectory, searcher), or signals"
        )
    if isinstance(runs, Plans):
        own = certificate.signal if certificate.signal in SIGNALS else "uncertainty"
        runs = watch(runs, signal=own, advisor=advisor)
    whose, watched = advisor, certificate.signal
    if isinstance(runs, Records):
        whose, watched = runs.advisor, runs.signal_name
    if watched != certificate.signal:
        raise MismatchError(
            f"the certificate is about the signal {certificate.signal!r}, not {watched!r}"
        )
    if whose != certificate.advisor:
        raise MismatchError(
            f"the certificate was made for advisor {certificate.advisor!r}, not for {whose!r}"
        )
    return runs
