"""``edfa fit``: fit an advisor on a table and its card, and save it."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edfa.commands import user_model
from edfa.commands.common import (
    AsJson,
    Card,
    Force,
    Output,
    Quiet,
    TableName,
    check_absent,
    grid,
    open_table,
    say_endings,
    show_progress,
)
from edfa.errors import SchemaError

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from edfa.advice.config import ModelFile
    from edfa.advice.evaluation import AdvisorEvaluation
    from edfa.data.rules import Rules
    from edfa.data.schema import Schema
    from edfa.data.table import Table


def fit(
    table: TableName,
    out: Annotated[Path, typer.Option(help="Folder to save the advisor to.")],
    schema: Card = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="An advisor file, .toml: any setting of an advisor, its parts, the operator's "
            "rules, a user model. Options given here come before it."
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            help="A fitted user model, which then decides: .skops, .onnx, .ubj, .json or .txt."
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(help="The outcomes in the order of the user model's probabilities: bad,good."),
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(help="Probability of the favourable class that is needed, or balanced."),
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(help="Largest share of plans that may fail; 0.2 unless given.")
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            help="A feature, such as sex: each group of people has a certificate of its own."
        ),
    ] = None,
    cap: Annotated[int | None, typer.Option(help="Largest number of rows.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Random seed of the split and the model; 0 unless given.")
    ] = None,
    accept_guesses: Annotated[
        bool,
        typer.Option(
            "--accept-guesses", help="Go on with a card that still says guessed = true somewhere."
        ),
    ] = False,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fit, certify, evaluate and save an advisor: blanket, model, certificate, and results on
    held-out people.
    """
    from edfa.advice.advisor import Advisor
    from edfa.advice.config import AdvisorFile, read_advisor
    from edfa.advice.evaluation import check_comparable, compare_free
    from edfa.advice.fitted import check_group
    from edfa.advice.persist import KIND
    from edfa.advice.warnings import find_warnings
    from edfa.artifacts import check_replaceable
    from edfa.writing import check_writable

    output = Output(as_json, quiet)
    check_absent(out, force)
    check_writable(out, made=True)
    check_replaceable(out, KIND)
    file = AdvisorFile() if config is None else read_advisor(config)
    typed = {"alpha": alpha, "threshold": _number(threshold), "groups": groups, "seed": seed}
    chosen = {key: value for key, value in typed.items() if value is not None}
    settings = {**file.settings, **chosen}
    if (decides := _user_model(file.model, model, classes)) is not None:
        settings["predictor"] = user_model.wrap_file(decides)
    advisor = Advisor(**settings)
    rows = open_table(table, schema, seed=advisor.seed, cap=file.cap if cap is None else cap)
    _check_guesses(rows.schema, accept_guesses, output)
    if advisor.groups is not None:
        check_group(advisor.groups, rows.schema)
    if file.compare_free:
        check_comparable(rows.schema, advisor.obey_directions and decides is None)
    if config is not None and advisor.rules is not None:
        _check_rules(config, advisor.rules, rows)
    with (
        show_progress(output) as progress,
        user_model.in_shell_words(),
        user_model.collect_warnings() as collected,
    ):
        advisor.fit(rows, progress=progress, n_jobs=file.jobs)
        advisor.save(out)
        compared = compare_free(advisor.fitted, rows.test) if file.compare_free else None
    fitted, evaluation, grouped = advisor.fitted, advisor.evaluation_, advisor.groups is not None
    certificate = advisor.certificates if grouped else advisor.certificate
    promises = say_endings(advisor.endings)
    output.say(str(fitted.blanket), "", *promises, evaluation.sentence)
    if evaluation.groups:
        output.show(_group_table(evaluation, str(advisor.groups)))
    if advisor.usage_ is not None:
        output.say(*advisor.usage_.sentences, f"While facts are missing: {advisor.fidelity_}.")
        output.say(f"Asked of the model: {fitted.model.asked_}.")
    results = {"directions": advisor.directions_, "compared": compared}
    checks = {name: check for name, check in results.items() if check is not None}
    output.say(*(check.sentence for check in checks.values()))
    warnings = (*collected, *find_warnings(rows, fitted.blanket, evaluation))
    output.say(*(f"Warning: {warning}" for warning in warnings), style="yellow")
    output.say(f"saved to {out}", style="dim")
    output.write_json(
        out=out,
        advisor=advisor.fingerprint,
        blanket=fitted.blanket,
        **{"certificates" if grouped else "certificate": certificate},
        endings=advisor.endings,
        evaluation=evaluation,
        warnings=warnings,
        guesses=rows.schema.guessed,
        **checks,
    )


def _user_model(
    named: "ModelFile | None", path: Path | None, classes: str | None
) -> "ModelFile | None":
    """The user model that decides; None: there is none.

    Parameters
    ----------
    named
        That of the advisor file.
    path, classes
        What was typed as ``--model`` and ``--classes``, which comes before the file.
    """
    from edfa.advice.config import ModelFile

    typed: dict[str, Any] = {} if path is None else {"file": str(path)}
    if classes is not None:
        typed["classes"] = tuple(name.strip() for name in classes.split(","))
    if named is not None:
        return replace(named, **typed)
    if path is None and typed:
        raise typer.BadParameter(
            "it says something of a user model: --model", param_hint="--classes"
        )
    return ModelFile(**typed) if typed else None


def _group_table(evaluation: "AdvisorEvaluation", name: str) -> "RichTable":
    """What becomes of each group of people, a row each."""
    rows = []
    for label, group in evaluation.groups.items():
        plan, risk, wasted = (
            "" if share is None else f"{share:.1%}"
            for share in (group.coverage, group.risk, group.wasted)
        )
        means = ["" if mean is None else f"{mean:.2f}" for mean in (group.changes, group.effort)]
        acting = str(group.n) if group.certified else "no certificate"
        cost = f"{group.cost:.2f}"
        rows.append([label, str(group.people), cost, plan, acting, risk, wasted, *means])
    broken = ">in vain" if evaluation.loss == "in_vain" else ">let down"
    measures = [">people", ">cost", ">with\na plan", ">told to\nact", broken, ">wasted"]
    return grid("", [name, *measures, ">changes", ">effort"], rows)


def _check_guesses(schema: "Schema", accepted: bool, output: Output) -> None:
    """List what the draft of a card guessed and nobody confirmed, a line for the outcome and for
    each feature with the keys that may be wrong; raise SchemaError unless that is accepted.
    """
    if not schema.guessed:
        return
    lines = (
        [f"{schema.target}: classes {', '.join(schema.classes)}"] if schema.target_guessed else []
    )
    for feature in (feature for feature in schema if feature.guessed):
        keys = [feature.kind, feature.change, *(["sensitive"] if feature.sensitive else [])]
        keys += [f"monotone {feature.monotone}"] if feature.monotone else []
        lines.append(f"{feature.name}: {', '.join(keys)}")
    reached = "accepted" if accepted else "not confirmed"
    output.say(
        f"Guessed by the draft of the card, and {reached}:", *(f"  {line}" for line in lines)
    )
    if not accepted:
        count = len(schema.guessed) - 1
        more = f" and {count} more" if count else ""
        raise SchemaError(
            f"the card's guesses about {schema.guessed[0]!r}{more} are not confirmed; check them "
            "and take `guessed = true` out, or go on with --accept-guesses"
        )


def _check_rules(path: Path, rules: "Rules", rows: "Table") -> None:
    """Refuse rules that do not fit the card or the table, or leave nothing to change: a
    SettingError that begins with the name of the advisor file.
    """
    from edfa.errors import EdfaError, SettingError

    try:
        everybody = rows.schema.rules_with(rules)
        everybody.check(rows.schema, rows.encoder)
        everybody.check_leaves_something(rows.schema)
    except EdfaError as error:
        raise SettingError(f"{path.name}: {error}") from None


def _number(text: str | None) -> float | str | None:
    """The text as a number if it is one."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text
