"""``edfa certify``: a new certificate from people who took no part in fitting; ``edfa monitor``: is it still true."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edfa.commands.common import NO, AsJson, Folder, Output, Quiet, advance, load_advisor

if TYPE_CHECKING:
    from edfa.advice.advisor import Advisor
    from edfa.certification.monitor import Monitor

__all__ = ["certify", "monitor"]

STATE = "monitor.json"


def certify(
    folder: Folder,
    rows: Annotated[Path, typer.Argument(help="Complete people, a row each: .csv or .parquet. No outcome is needed.")],
    alpha: Annotated[float | None, typer.Option(help="At most this share of plans may fail; as fitted.")] = None,
    delta: Annotated[float | None, typer.Option(help="It may be wrong with this probability; as fitted.")] = None,
    keep: Annotated[bool, typer.Option(help="Save the advisor with its new certificate.")] = True,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Certify a saved advisor on new people; exit code 3 where nothing can be promised."""
    from edfa.data.read import read_frame

    output = Output(as_json, quiet)
    advisor = load_advisor(folder)
    people = read_frame(rows)
    advisor.alpha = advisor.alpha if alpha is None else alpha
    advisor.delta = advisor.delta if delta is None else delta
    with advance(output) as progress:
        certificate = advisor.certify(people, progress=progress)
        if keep:
            advisor.save(folder)
    output.say(certificate.sentence, *certificate.warnings)
    output.tell(**json.loads(certificate.to_json()))
    if not certificate.certified:
        raise typer.Exit(NO)


def monitor(
    folder: Folder,
    audits: Annotated[
        Path | None,
        typer.Argument(help="Audited people: a column loss (0 or 1), or all their facts. Left out: what is known."),
    ] = None,
    delta: Annotated[float, typer.Option(help="The chance of a false alarm, ever; set at the first audit.")] = 0.05,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Watch a certificate by random audits; exit code 3 once it is refuted."""
    from edfa.artifacts import write_text

    output = Output(as_json, quiet)
    advisor = load_advisor(folder)
    state, path = _state(advisor, folder / STATE, delta), folder / STATE
    if audits is not None:
        state = state.audit(_losses(advisor, audits), advisor=advisor.fingerprint)
        write_text(path, state.to_json())
    output.say(str(state))
    output.tell(**json.loads(state.to_json()), alarm=state.alarm, p_value=state.p_value, sentence=str(state))
    if state.alarm:
        raise typer.Exit(NO)


def _state(advisor: "Advisor", path: Path, delta: float) -> "Monitor":
    """Where the watch stands; a new one for a new certificate, which saving the advisor again makes."""
    from edfa.certification.monitor import Monitor

    if path.is_file():
        return Monitor.from_json(path.read_text(encoding="utf-8"))
    return Monitor.of(advisor.certificate, delta)


def _losses(advisor: "Advisor", path: Path) -> Any:
    """Given, or worked out from everything that is known of the audited people."""
    import numpy as np

    from edfa.advice.evaluation import encode_complete, roll_out
    from edfa.data.read import read_frame
    from edfa.errors import DataError

    frame = read_frame(path)
    if "loss" in frame.columns:
        return frame["loss"].to_numpy()
    records = roll_out(advisor.fitted, encode_complete(frame, advisor.fitted)).records
    stops = advisor.certificate.stop(records)
    chosen = {(p, s) for p, s in zip(stops.person.tolist(), stops.step.tolist(), strict=True) if s >= 0}
    place = [pair in chosen for pair in zip(records.person.tolist(), records.step.tolist(), strict=True)]
    if not any(place):
        raise DataError("the certificate speaks of none of these people: they have no plan at any step")
    return np.asarray(records.loss)[place]
