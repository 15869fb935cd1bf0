"""``edfa certify`` makes a new certificate from new people; ``edfa monitor`` checks whether it
still holds.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edfa.commands.common import (
    EXIT_NO,
    AsJson,
    Folder,
    Output,
    Quiet,
    Scheduler,
    load_advisor,
    say_endings,
    show_progress,
)
from edfa.errors import MismatchError, SettingError

if TYPE_CHECKING:
    from edfa.advice.advisor import Advisor
    from edfa.advice.fitted import Promise
    from edfa.certification.monitor import Monitor

MONITOR_FILE = "monitor.json"


def certify(
    folder: Folder,
    rows: Annotated[
        Path,
        typer.Argument(
            help=(
                "People who took no part in fitting: .csv or .parquet, no gap in "
                "what is asked, no outcome needed."
            )
        ),
    ],
    alpha: Annotated[
        float | None,
        typer.Option(help="Largest share of plans that may fail; by default as fitted."),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            help="Largest probability that the certificate is wrong; by default as fitted."
        ),
    ] = None,
    keep: Annotated[bool, typer.Option(help="Save the advisor with its new certificate.")] = True,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Save it even if it promises nothing where the old one promises something.",
        ),
    ] = False,
    scheduler: Scheduler = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Certify a saved advisor on new people; exit code 3 if nothing can be promised."""
    from edfa.data.read import read_frame

    output = Output(as_json, quiet)
    advisor = load_advisor(folder)
    old = advisor.fitted.promise
    people = read_frame(rows, advisor.schema)
    advisor.alpha = advisor.alpha if alpha is None else alpha
    advisor.delta = advisor.delta if delta is None else delta
    with show_progress(output) as progress:
        progress("preparing", 0, 1)
        made = advisor.certify(people, progress=progress, scheduler=scheduler, folder=folder)
    new = advisor.fitted.promise
    promised, before = _promised(new), _promised(old)
    lost = sorted(filter(None, before - promised))
    saved = keep and (replace or before <= promised)
    audited = saved and _save(advisor, folder, old.certificate_id)
    parts = [part for ending in new.endings for part in ending.certificates.values()]
    warnings = (warning for part in parts for warning in part.warnings)
    output.say(*say_endings(advisor.endings), *dict.fromkeys(warnings))
    if audited:
        output.say(
            "The audits so far were of the old certificate, and are gone with it.", style="yellow"
        )
    if keep and not saved:
        to = "to" if len(new.endings) == 1 else "about"
        whom = f" {to} {', '.join(lost)}" if lost else ""
        output.say(
            f"The old certificate stays, for it promises something{whom}; --replace takes "
            "the new one."
        )
    output.write_json(made, saved=saved, endings=advisor.endings)
    if not promised or (keep and not saved):
        raise typer.Exit(EXIT_NO)


def _promised(promise: "Promise") -> set[str]:
    """What is certified: the names of groups, empty for everybody; of several endings, the name of
    each with that of the group.
    """
    several = len(promise.endings) > 1
    return {
        " in ".join(filter(None, [ending.name if several else "", group]))
        for ending in promise.endings
        for group, part in ending.certificates.items()
        if part.certified
    }


def _save(advisor: "Advisor", folder: Path, old: str) -> bool:
    """Save the advisor with its new certificate.

    Parameters
    ----------
    advisor, folder
        The advisor, and where it is saved.
    old
        The id of the certificate that is there; nothing is saved if it is the same one.

    Returns
    -------
    bool
        Whether there were audits of the old certificate, which are gone with it.
    """
    from edfa.writing import tidy

    if advisor.fitted.promise.certificate_id == old:
        tidy(folder)
        return False
    audited = (folder / MONITOR_FILE).is_file()
    advisor.save(folder)
    return audited


def monitor(
    folder: Folder,
    audits: Annotated[
        Path | None,
        typer.Argument(
            help=(
                "Audited people: a column loss (0 or 1), or all their "
                "features. Without it, the state so far."
            )
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            help=(
                "Probability of ever raising a false alarm, 0.05 unless "
                "given; fixed at the first audit."
            )
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check a certificate by random audits; exit code 3 once it is refuted."""
    from edfa.certification.certificate import Certificate
    from edfa.reading import read_text
    from edfa.writing import locked, write_text

    output = Output(as_json, quiet)
    advisor = load_advisor(folder)
    if audits is None:
        state = _load_monitor(advisor, folder, delta)
    else:
        losses = _losses(advisor, audits)
        with locked(folder.resolve()):  # nobody else adds audits, or saves another advisor
            if Certificate.from_json(read_text(folder / "certificate.json")) != advisor.certificate:
                raise MismatchError(
                    f"the certificate in {folder} has just been replaced; audit again"
                )
            state = _load_monitor(advisor, folder, delta)
            state = state.audit(losses, advisor=advisor.fingerprint)
            write_text(folder / MONITOR_FILE, state.to_json())
    output.say(str(state))
    output.write_json(state, alarm=state.alarm, p_value=state.p_value, sentence=str(state))
    if state.alarm:
        raise typer.Exit(EXIT_NO)


def _load_monitor(advisor: "Advisor", folder: Path, delta: float | None) -> "Monitor":
    """The monitor as the last audit left it, or a new one where there is none.

    Parameters
    ----------
    advisor, folder
        The advisor, and the folder that it is saved in.
    delta
        The probability of ever raising a false alarm; None: as it is, or 0.05.

    Raises
    ------
    MismatchError
        If the monitor is of another certificate.
    SettingError
        If ``delta`` is another one than at the first audit.
    """
    from edfa.certification.monitor import Monitor
    from edfa.errors import UnreadableError
    from edfa.reading import read_text

    path, certificate = folder / MONITOR_FILE, advisor.certificate
    if not path.is_symlink() and not path.exists():
        return Monitor.of(certificate, 0.05 if delta is None else delta)
    try:
        state = Monitor.from_json(read_text(path))
        state.check_watches(certificate)
    except (UnreadableError, MismatchError) as error:
        raise type(error)(f"{path}: {error}; move it away to begin anew") from None
    if delta not in (None, state.delta):
        raise SettingError(
            f"--delta is fixed at the first audit, which was held at {state.delta:g}, not {delta:g}"
        )
    return state


def _losses(advisor: "Advisor", path: Path) -> Any:
    """The audited people's losses, 0 or 1, (people,).

    Parameters
    ----------
    advisor
        The advisor whose certificate is audited.
    path
        The file of these people: with a column ``loss``, or with all their features, from which the
        losses are computed for those whom the certificate speaks of.

    Raises
    ------
    DataError
        If the certificate speaks of none of them.
    """
    import numpy as np

    from edfa.advice.calibration_people import encode_complete
    from edfa.advice.promise import roll_out
    from edfa.data.read import read_frame
    from edfa.errors import DataError

    frame = read_frame(path, advisor.schema)
    if "loss" in frame.columns:
        return frame["loss"].to_numpy()
    people = roll_out(advisor.fitted, encode_complete(frame, advisor.fitted).X)
    certificate = advisor.certificate
    stops = certificate.stop(people.records)
    # A promise to those who act is not about people whom nothing tells to act.
    meant = stops.triggered if certificate.target in ("early", "act") else stops.step >= 0
    if not meant.any():
        raise DataError(
            "the certificate speaks of none of these people: they have no plan, or are "
            "not told to act"
        )
    stopped = (people.trajectory.at(0) + stops.step)[meant]
    return np.asarray(people.records.loss)[stopped]
