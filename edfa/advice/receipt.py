"""A receipt: what was told, what was not known, what was decided and offered, by which advisor; signed or not.

A signature is HMAC-SHA256 under a key of the operator: it shows whoever holds the key that nothing was changed since.
"""

import hashlib
import hmac
import json
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from edfa.errors import SettingError, UnreadableError
from edfa.parsing import parse
from edfa.text import summaries

__all__ = ["Difference", "Receipt", "Verification", "now", "read_key", "versions"]

VERSION = 2
LEAST_KEY = 16  # bytes
MADE_WITH = ("numpy", "scikit-learn", "xgboost-cpu", "xgboost", "torch")


@dataclass(frozen=True, repr=False)
class Receipt:
    """What a person is handed.

    ``events`` are all that was told and declined, in order, and enough to replay the interview; ``flags`` says which
    facts were not taken as told. ``costs``, ``locks`` and ``overlay`` (limits on plans, see ``Constraints``) were the
    person's own; ``constraints`` were set for these plans alone. ``plans`` are the plans that were offered, as data,
    ``chosen`` the id of the one the person follows. ``certificate`` is empty unless the person may act now.
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
    costs: Mapping[str, float]
    locks: tuple[str, ...]
    overlay: Mapping[str, Any] | None
    flags: tuple[str, ...]
    decision: Mapping[str, Any]
    question: str | None
    plans: tuple[Mapping[str, Any], ...]
    no_plan: Mapping[str, Any] | None
    k: int
    constraints: Mapping[str, Any] | None
    chosen: str | None
    standing: Mapping[str, Any]
    certificate: str
    key: str = ""
    signature: str = ""

    def __repr__(self) -> str:
        signed = "signed" if self.signed else "not signed"
        return f"<Receipt of {self.time}: {self.decision['outcome']}, {len(self.plans)} plans, {signed}>"

    def _repr_html_(self) -> str:
        return summaries.receipt_html(self)

    @property
    def signed(self) -> bool:
        """Whether it carries a signature; only who has the key can say if it is right."""
        return bool(self.signature)

    @property
    def sentence(self) -> str:
        """Whether and how it is signed, in words."""
        if not self.signed:
            return "This receipt is not signed: it shows what was said, not that nobody has changed it."
        return f"Signed with HMAC-SHA256 under the key {self.key}."

    def payload(self) -> bytes:
        """What a signature is of: everything but itself."""
        content = {name: value for name, value in asdict(self).items() if name != "signature"}
        return json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()

    def sign(self, key: bytes) -> "Receipt":
        """The same, signed."""
        named = replace(self, key=hashlib.sha256(key).hexdigest()[:8])
        return replace(named, signature=hmac.new(key, named.payload(), hashlib.sha256).hexdigest())

    def right(self, key: bytes) -> bool:
        """Whether the signature is that of this key and this content."""
        expected = hmac.new(key, self.payload(), hashlib.sha256).hexdigest()
        return hmac.compare_digest(expected.encode(), self.signature.encode())

    def to_json(self) -> str:
        """As JSON; ``from_json`` reads it back, equal."""
        return json.dumps({"version": VERSION} | asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Receipt":
        """Read what ``to_json`` wrote."""
        try:
            content = json.loads(text)
            written = content.pop("version")
        except (ValueError, KeyError, AttributeError, TypeError):
            raise UnreadableError("this is not a receipt") from None
        if written != VERSION:
            raise UnreadableError(f"this receipt is of version {written}; version {VERSION} can be read")
        return parse(cls, content, "receipt")


@dataclass(frozen=True)
class Difference:
    """One part of a receipt that does not come out again: what it says, and what the advisor says today."""

    part: str
    receipt: Any
    today: Any


@dataclass(frozen=True)
class Verification:
    """What became of a receipt when its interview was replayed.

    ``signature`` is ``"right"``, ``"wrong"`` or ``"missing"`` (a key was given, and the receipt is not signed); without
    a key ``"not_checked"``, or ``"none"`` if it is not signed.
    """

    signature: str
    advisor: bool
    differences: tuple[Difference, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing differs and no signature is wrong; whoever has the key accepts no receipt without one."""
        return self.advisor and not self.differences and self.signature not in ("wrong", "missing")

    def __str__(self) -> str:
        if self.holds:
            verdict = "The receipt holds: replayed, the advisor says the same."
        elif not self.advisor:
            verdict = "The receipt is of another advisor."
        else:
            verdict = "The receipt does not hold."
        changes = [f"{d.part}: {d.receipt!r} then, {d.today!r} today." for d in self.differences]
        words = {"none": "not there", "right": "right", "wrong": "wrong", "missing": "missing"}
        signature = words.get(self.signature, "not checked")
        return " ".join([verdict, *changes, f"The signature is {signature}."])


def read_key(path: str | Path) -> bytes:
    """The operator's key from a file; its bytes, without white space at the ends."""
    try:
        key = Path(path).read_bytes().strip()
    except OSError as error:
        raise UnreadableError(f"cannot read the key file {path}: {error.strerror}") from None
    if len(key) < LEAST_KEY:
        raise SettingError(f"the key in {path} has {len(key)} bytes; at least {LEAST_KEY} are needed")
    return key


@cache
def versions() -> dict[str, str]:
    """The versions of edfa, Python and the libraries that answers depend on."""
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
