"""``edfa fit``: from a table and its card to a saved advisor."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from edfa.commands.common import AsJson, Output, Quiet, advance, open_table

__all__ = ["fit"]


def fit(
    table: Annotated[str, typer.Argument(help="A data set of the paper, or a .csv or .parquet file.")],
    out: Annotated[Path, typer.Option(help="The folder to save the advisor to.")],
    schema: Annotated[Path | None, typer.Option(help="The card of your own table.")] = None,
    blanket: Annotated[str, typer.Option(help="hiton-mb, bamb, eamb or iamb.")] = "hiton-mb",
    predictor: Annotated[str, typer.Option(help="xgb, ftt, mlp or bn.")] = "xgb",
    policy: Annotated[
        str | None, typer.Option(help="Which fact comes next; goes with the searcher: surviving, edfa, …")
    ] = None,
    searcher: Annotated[
        str,
        typer.Option(help="How plans are looked for: lasting; nearest, with the paper's policy and signal; nice, …"),
    ] = "survival",
    signal: Annotated[
        str | None,
        typer.Option(help="What the stop rule watches; goes with the searcher: survival, uncertainty, plan."),
    ] = None,
    alpha: Annotated[float, typer.Option(help="At most this share of plans may fail.")] = 0.2,
    delta: Annotated[float, typer.Option(help="The certificate may be wrong with this probability.")] = 0.05,
    target: Annotated[str, typer.Option(help="Whom the certificate speaks of: all, early or refused.")] = "all",
    budget: Annotated[str, typer.Option(help="What an interview may cost: a share, an amount, or inf.")] = "inf",
    threshold: Annotated[
        str | None, typer.Option(help="The chance of the favourable class that is needed, or balanced.")
    ] = None,
    cap: Annotated[int | None, typer.Option(help="At most so many rows.")] = None,
    seed: Annotated[int, typer.Option(help="Of the split and the model.")] = 0,
    jobs: Annotated[int, typer.Option(help="So many share the search for plans; -1: one a processor.")] = -1,
    force: Annotated[bool, typer.Option(help="Replace an advisor that is there.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fit an advisor on a table: blanket, model, certificate, and how it does on people it has not met."""
    from edfa.advice.advisor import Advisor
    from edfa.advice.persist import check_place

    output = Output(as_json, quiet)
    if out.exists() and not force:
        raise typer.BadParameter(f"{out} is there already; --force replaces it", param_hint="--out")
    check_place(out)
    chosen = {"policy": policy, "searcher": searcher, "signal": signal}
    settings: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    settings |= {"budget": _number(budget), "threshold": _number(threshold), "target": target}
    advisor = Advisor(blanket, predictor, alpha=alpha, delta=delta, seed=seed, **settings)
    rows = open_table(table, schema, seed=seed, cap=cap)
    with advance(output) as progress:
        advisor.fit(rows, progress=progress, n_jobs=jobs)
        advisor.save(out)
    output.say(str(advisor.fitted.blanket), "", advisor.certificate.sentence, str(advisor.evaluation_))
    output.say(f"saved to {out}", style="dim")
    output.tell(
        out=str(out),
        advisor=advisor.fingerprint,
        blanket=json.loads(advisor.fitted.blanket.to_json()),
        certificate=json.loads(advisor.certificate.to_json()),
        evaluation=json.loads(advisor.evaluation_.to_json()),
    )


def _number(text: str | None) -> float | str | None:
    """A number where it is one."""
    try:
        return None if text is None else "inf" if text == "inf" else float(text)
    except ValueError:
        return text
