"""How a service runs: for how long interviews are stored, who may see what, how much a client may
ask. ``WebSettings`` holds all of it.
"""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

from edfa.errors import SettingError


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
    keep_unfinished, keep_finished
        How long an interview is kept after its last change.
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
    >>> WebSettings(secure=False).keep_unfinished.days
    30
    """

    secure: bool = True
    operator_key: str | None = None
    letter: Path | None = None
    keep_unfinished: timedelta = timedelta(days=30)
    keep_finished: timedelta = timedelta(days=760)
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
        if self.requests_a_minute < 1:
            raise SettingError("requests_a_minute: at least 1")
