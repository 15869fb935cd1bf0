"""A receipt: what was told, what was not known, what was decided and offered, by which advisor;
signed or not.

``Interview.receipt`` makes one and ``edfa.advice.verify`` holds it against the advisor. A signature
is HMAC-SHA256 under a key of the operator: it shows whoever holds the key that nothing was changed
since. Without the key, replaying shows changes of all that follows from the answers; the time and
the versions follow from nothing, and only a signature protects them.
"""

import hashlib
import hmac
import json
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from edfa.certification.certificate import infinities_as_words
from edfa.errors import SettingError, UnreadableError
from edfa.reading import RESOURCES, parse, parse_object, read_bytes
from edfa.text import summaries
from edfa.text.phrases import LANGUAGES

VERSION = 1
LEAST_KEY, LARGEST_KEY = 16, 1 << 16  # bytes
Outcome = Literal["holds", "other_certificate", "other_advisor", "changed"]
MADE_WITH = ("numpy", "scikit-learn", "xgboost-cpu", "xgboost", "torch")


@dataclass(frozen=True, repr=False)
class Receipt:
    """What a person is handed at any point of an interview.

    Parameters
    ----------
    time
        When it was made, in UTC.
    advisor
        The fingerprint of the advisor.
    versions
        The versions of edfa, Python and libraries.
    language
        The language of its texts.
    facts, unknown, declined
        What was told, by feature name; the features that are not known; those that were declined.
    spent
        What the answers cost.
    events
        All that was told and declined, in order: enough to replay the interview.
    overlay
        The person's prices, locks and limits (see ``Overlay``); None: there were none.
    flags
        Sentences about facts that were not taken as told.
    decision, question, standing
        The decision as data, the feature to ask next (None: nothing more), and whether the person
        may act, as data.
    plans, no_plan, k
        The plans that were offered, as data; why there is none; the largest number of them.
    chosen
        The id of the plan that the person follows, if they said so.
    certificate
        The promise in words; empty unless the person may act now.
    certificate_id
        The digest of the certificate that the advisor had, whether they may act or not.
    model
        The name of the user model that decided, and what answered for it before everything was
        known; empty for any other model.
    key, signature
        The first digits of the hash of the operator's key, and the signature; empty: not signed.
    """

    time: str
    advisor: str
    versions: Mapping[str, str]
    language: str
    facts: Mapping[str, Any]
    unknown: tuple[str, ...]
    declined: tuple[str, ...]
    spent: float
    events: tuple[Mapping[str, Any], ...]
    overlay: Mapping[str, Any] | None
    flags: tuple[str, ...]
    decision: Mapping[str, Any]
    question: str | None
    plans: tuple[Mapping[str, Any], ...]
    no_plan: Mapping[str, Any] | None
    k: int
    chosen: str | None
    standing: Mapping[str, Any]
    certificate: str
    certificate_id: str = ""
    model: str = ""
    key: str = ""
    signature: str = ""

    def __repr__(self) -> str:
        signed = "signed" if self.signed else "not signed"
        return (
            f"<Receipt of {self.time}: {self.decision.get('outcome')}, "
            f"{len(self.plans)} plans, {signed}>"
        )

    def _repr_html_(self) -> str:
        return summaries.receipt_html(
            self, language=self.language if self.language in LANGUAGES else "en"
        )

    @property
    def signed(self) -> bool:
        """Whether it carries a signature; only who has the key can say if it is right."""
        return bool(self.signature)

    @property
    def sentence(self) -> str:
        """Whether and how it is signed, in words."""
        return summaries.signed_sentence(self)

    def payload(self) -> bytes:
        """What a signature is of: everything but itself, the same bytes for the same content."""
        content = {"version": VERSION} | asdict(self)
        del content["signature"]
        return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()

    def sign(self, key: bytes) -> "Receipt":
        """The same receipt, signed.

        Parameters
        ----------
        key
            The operator's key; one of fewer than 16 bytes is a SettingError.
        """
        named = replace(self, key=hashlib.sha256(check_key(key)).hexdigest()[:8])
        return replace(named, signature=hmac.new(key, named.payload(), hashlib.sha256).hexdigest())

    def right(self, key: bytes) -> bool:
        """Whether the signature is that of this content.

        Parameters
        ----------
        key
            The operator's key.
        """
        expected = hmac.new(check_key(key), self.payload(), hashlib.sha256).hexdigest()
        return hmac.compare_digest(expected.encode(), self.signature.encode(errors="replace"))

    def to_json(self) -> str:
        """As JSON; ``from_json`` reads it back, equal."""
        content = {"version": VERSION} | infinities_as_words(asdict(self))
        return json.dumps(content, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Receipt":
        """Read what ``to_json`` wrote.

        Raises
        ------
        UnreadableError
            For any other text, and for a receipt of another version.
        """
        content = parse_object(text, "this receipt")
        written = content.pop("version", None)
        if type(written) is not int or written != VERSION:
            raise UnreadableError(
                f"this receipt is of version {written!r:.20}; version {VERSION} can be read"
            )
        return parse(cls, content, "receipt", UnreadableError)


@dataclass(frozen=True)
class Difference:
    """One part of a receipt that does not come out again.

    Parameters
    ----------
    part
        The name of a field of ``Receipt``.
    receipt, today
        What the receipt says, and what the advisor says today.
    """

    part: str
    receipt: Any
    today: Any


@dataclass(frozen=True)
class Verification:
    """What became of a receipt when its interview was replayed; ``str`` gives it in words.

    Parameters
    ----------
    signature
        ``"right"``, ``"wrong"`` or ``"missing"`` (a key was given, and the receipt is not signed);
        without a key ``"not_checked"``, or ``"none"`` if it is not signed.
    advisor
        Whether it is a receipt of this advisor; if not, nothing was replayed.
    differences
        What does not come out again.
    certificates
        The digests of the certificate the receipt was made under and of today's, if they are two:
        then it was not compared whether the person may act.
    """

    signature: str
    advisor: bool
    differences: tuple[Difference, ...]
    certificates: tuple[str, str] | None = None

    @property
    def outcome(self) -> Outcome:
        """``"changed"``: something differs, or the signature is wrong or missing; else whether all
        was compared.
        """
        if not self.advisor:
            return "other_advisor"
        if self.differences or self.signature in ("wrong", "missing"):
            return "changed"
        return "other_certificate" if self.certificates else "holds"

    @property
    def holds(self) -> bool:
        """Whether nothing differs and no signature is wrong; with a key, a receipt without a
        signature does not hold.
        """
        return self.outcome == "holds"

    def __str__(self) -> str:
        verdict = {
            "holds": "The receipt holds: replayed, the advisor says the same.",
            "other_certificate": (
                "All else in it comes out the same; whether the person may act was not compared."
            ),
            "other_advisor": "The receipt is of another advisor.",
            "changed": "The receipt does not hold.",
        }[self.outcome]
        made = []
        if self.certificates:
            then, today = (f"certificate {c}" if c else "no certificate" for c in self.certificates)
            made = [f"The receipt was made under {then}; the advisor now has {today}."]
        changes = [f"{d.part}: {d.receipt!r} then, {d.today!r} today." for d in self.differences]
        words = {"none": "not there", "right": "right", "wrong": "wrong", "missing": "missing"}
        signature = words.get(self.signature, "not checked")
        return " ".join([*made, verdict, *changes, f"The signature is {signature}."])


def check_key(key: bytes, whose: str = "the key") -> bytes:
    """The key, if it can sign: SettingError for anything but bytes, and for fewer than 16 of them,
    which can be guessed.

    Parameters
    ----------
    key
        The key.
    whose
        What error messages call it.
    """
    if not isinstance(key, bytes | bytearray):
        raise SettingError(f"{whose} is bytes, not {type(key).__name__}")
    if len(key) < LEAST_KEY:
        raise SettingError(f"{whose} has {len(key)} bytes; at least {LEAST_KEY} are needed")
    return bytes(key)


def read_key(path: str | Path) -> bytes:
    """The operator's key from a file; its bytes, without white space at the ends.

    Raises
    ------
    UnreadableError
        If there is no such file.
    SettingError
        If it has fewer than 16 bytes.
    """
    return check_key(read_bytes(path, LARGEST_KEY).strip(), f"the key in {path}")


def versions() -> dict[str, str]:
    """The versions of edfa, Python and the libraries that answers depend on."""
    found: dict[str, str] = RESOURCES.get("versions", _look_up_versions)
    return found


def _look_up_versions() -> dict[str, str]:
    used = {"edfa": sys.modules["edfa"].__version__, "python": platform.python_version()}
    for name in MADE_WITH:
        try:
            used[name] = version(name)
        except PackageNotFoundError:
            continue
    return used


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
