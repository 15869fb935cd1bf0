"""How a service runs: for how long interviews are stored, who may see what, how much a client may
ask. ``WebSettings`` holds all of it.
"""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

from edfa.errors import SettingError
from edfa.text.phrases import LANGUAGES

__all__ = ["WebSettings"]


@dataclass(frozen=True)
class WebSettings:
    """Settings of ``edfa serve``.

    Parameters
    ----------
    secure
        Whether the page is served over HTTPS; cookies are then sent over nothing else. Off for a
        trial on loopback.
    operator_key
        What opens the operator's view, the audit and the metrics, at least 16 characters; None:
        they are closed.
    letter
        The operator's ``letter.toml``; None: no letters are written.
    letter_template
        The usual letter, ``"us"`` or ``"eu"``.
    languages
        In which languages the page is offered, the first by default.
    keep_unfinished, keep_finished
        How long an interview is kept after its last change.
    max_body
        The largest body of a request, in bytes.
    requests_a_minute
        How many requests one client may make in a minute; from one address there may be four times
        as many.
    monitor
        The file in which ``edfa monitor`` keeps the audits of the advisor; None: there is none to
        show.

    Raises
    ------
    SettingError
        If a setting is outside of what is allowed.

    Examples
    --------
    >>> WebSettings(secure=False).languages
    ('en', 'de')
    """

    secure: bool = True
    operator_key: str | None = None
    letter: Path | None = None
    languages: tuple[str, ...] = LANGUAGES
    keep_unfinished: timedelta = timedelta(days=30)
    keep_finished: timedelta = timedelta(days=760)
    max_body: int = 64 * 1024
    requests_a_minute: int = 300
    monitor: Path | None = None
    letter_template: Literal["us", "eu"] = "us"

    def __post_init__(self) -> None:
        if self.operator_key is not None and len(self.operator_key) < 16:
            raise SettingError(
                f"operator_key: at least 16 characters, not {len(self.operator_key)}"
            )
        if self.letter_template not in ("us", "eu"):
            raise SettingError(f"letter_template: us or eu, not {self.letter_template!r}")
        if self.max_body < 1024 or self.requests_a_minute < 1:
            raise SettingError("max_body is at least 1,024 bytes and requests_a_minute at least 1")
        if not self.languages or any(language not in LANGUAGES for language in self.languages):
            raise SettingError(
                f"languages: one or more of {', '.join(LANGUAGES)}, not {self.languages}"
            )
