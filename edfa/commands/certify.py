"""``edfa certify`` makes a new certificate from new people; ``edfa monitor`` checks whether it still holds."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edfa.commands.common import EXIT_NO, AsJson, Folder, Output, Quiet, Scheduler, load_advisor, show_progress

if TYPE_CHECKING:
    from edfa.advice.advisor import Advisor
    from edfa.certification.monitor import Monitor

__all__ = ["certify", "monitor"]

MONITOR_FILE = "monitor.json"


def certify(
    folder: Folder,
    rows: Annotated[
        Path,
        typer.Argument(
            help="People who took no part in fitting: .csv or .parquet, no gap in what is asked, no outcome needed."
        ),
    ],
    alpha: Annotated[
        float | None, typer.Option(help="Largest share of plans that may fail; by default as fitted.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Largest probability that the certificate is wrong; by default as fitted.")
    ] = None,
    keep: Annotated[bool, typer.Option(help="Save the advisor with its new certificate.")] = True,
    scheduler: Scheduler = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Certify a saved advisor on new people; exit code 3 if nothing can be promised."""
    from edfa.certification.certificate import Certificate
    from edfa.data.read import read_frame

    output = Output(as_json, quiet)
    advisor = load_advisor(folder)
    people = read_frame(rows)
    advisor.alpha = advisor.alpha if alpha is None else alpha
    advisor.delta = advisor.delta if delta is None else delta
    with show_progress(output) as progress:
        certificate = advisor.certify(people, progress=progress, scheduler=scheduler, folder=folder)
        if keep:
            advisor.save(folder)
    parts = [certificate] if isinstance(certificate, Certificate) else list(certificate.values())
    output.say(certificate.sentence, *dict.fromkeys(warning for part in parts for warning in part.warnings))
    output.write_json(**json.loads(certificate.to_json()))
    if not any(part.certified for part in parts):
        raise typer.Exit(EXIT_NO)


def monitor(
    folder: Folder,
    audits: Annotated[
        Path | None,
        typer.Argument(
            help="Audited people: a column loss (0 or 1), or all their features. Without it, the state so far."
        ),
    ] = None,
    delta: Annotated[
        float, typer.Option(help="Probability of ever raising a false alarm; fixed at the first audit.")
    ] = 0.05,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check a certificate by random audits; exit code 3 once it is refuted."""
    from edfa.writing import write_text

    output = Output(as_json, quiet)
    advisor = load_advisor(folder)
    path = folder / MONITOR_FILE
    state = _load_monitor(advisor, path, delta)
    if audits is not None:
        state = state.audit(_losses(advisor, audits), advisor=advisor.fingerprint)
        write_text(path, state.to_json())
    output.say(str(state))
    output.write_json(**json.loads(state.to_json()), alarm=state.alarm, p_value=state.p_value, sentence=str(state))
    if state.alarm:
        raise typer.Exit(EXIT_NO)


def _load_monitor(advisor: "Advisor", path: Path, delta: float) -> "Monitor":
    """The monitor as the last audit left it, or a new one; saving the advisor again removes the old file."""
    from edfa.certification.monitor import Monitor

    if path.is_file():
        return Monitor.from_json(path.read_text(encoding="utf-8"))
    return Monitor.of(advisor.certificate, delta)


def _losses(advisor: "Advisor", path: Path) -> Any:
    """The audited people's losses, 0 or 1: the file's column ``loss``, or computed from all their features."""
    import numpy as np

    from edfa.advice.complete import encode_complete
    from edfa.advice.evaluation import roll_out
    from edfa.data.read import read_frame
    from edfa.errors import DataError

    frame = read_frame(path)
    if "loss" in frame.columns:
        return frame["loss"].to_numpy()
    records = roll_out(advisor.fitted, encode_complete(frame, advisor.fitted).X).records
    certificate = advisor.certificate
    stops = certificate.stop(records)
    # A promise to those who act is not about people whom nothing tells to act.
    meant = stops.triggered if certificate.target in ("early", "act") else stops.step >= 0
    stopped = {*zip(stops.person[meant].tolist(), stops.step[meant].tolist(), strict=True)}
    is_stop = [pair in stopped for pair in zip(records.person.tolist(), records.step.tolist(), strict=True)]
    if not any(is_stop):
        raise DataError("the certificate speaks of none of these people: they have no plan, or are not told to act")
    return np.asarray(records.loss)[is_stop]
