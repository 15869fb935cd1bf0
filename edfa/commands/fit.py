"""``edfa fit``: fit an advisor on a table and its card, and save it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from edfa.commands import completion, own_model
from edfa.commands.common import (
    AsJson,
    BlanketMethod,
    Output,
    Quiet,
    TableName,
    open_table,
    show_progress,
)
from edfa.errors import SchemaError

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from edfa.advice.evaluation import AdvisorEvaluation
    from edfa.data.rules import Rules
    from edfa.data.schema import Schema
    from edfa.data.table import Table

__all__ = ["fit"]


def fit(
    table: TableName,
    out: Annotated[Path, typer.Option(help="Folder to save the advisor to.")],
    schema: Annotated[Path | None, typer.Option(help="The card of your own table.")] = None,
    blanket: BlanketMethod = "hiton-mb",
    predictor: Annotated[
        str, typer.Option(help="xgb, ftt, mlp or bn.", autocompletion=completion.predictors)
    ] = "xgb",
    model: Annotated[
        Path | None,
        typer.Option(
            help=(
                "A fitted model of your own, which then decides: a .skops, "
                ".onnx, .ubj, .json or .txt file."
            )
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            help=(
                "The outcomes in the order of your model's probabilities, "
                "with commas between: bad,good."
            )
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="The columns in your model's order, where it does not say them, "
            "with commas between: age,income; "
            "or encoded, if it was fitted on a table's X."
        ),
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            help=(
                "A few rows of the frame your model was fitted on, where it "
                "has categories: a .parquet file."
            )
        ),
    ] = None,
    partial: Annotated[
        str,
        typer.Option(
            help="What your model says before all is known: distilled, completed or tree.",
            autocompletion=completion.complete("distilled", "completed", "tree"),
        ),
    ] = "distilled",
    policy: Annotated[
        str | None,
        typer.Option(
            help=(
                "How the next question is chosen: survival, edfa, …; by "
                "default as suits the searcher."
            ),
            autocompletion=completion.policies,
        ),
    ] = None,
    searcher: Annotated[
        str,
        typer.Option(
            help=(
                "How plans are found: survival, nearest (the paper's policy "
                "and signal go with it), nice, …"
            ),
            autocompletion=completion.searchers,
        ),
    ] = "survival",
    signal: Annotated[
        str | None,
        typer.Option(
            help=(
                "What the stop rule watches: survival, uncertainty or plan; "
                "by default as suits the searcher."
            ),
            autocompletion=completion.complete("survival", "uncertainty", "plan"),
        ),
    ] = None,
    alpha: Annotated[float, typer.Option(help="Largest share of plans that may fail.")] = 0.2,
    delta: Annotated[
        float, typer.Option(help="Largest probability that the certificate is wrong.")
    ] = 0.05,
    target: Annotated[
        str,
        typer.Option(
            help="Whom the certificate is about: people who act early, act, all, or refused.",
            autocompletion=completion.complete("early", "act", "all", "refused"),
        ),
    ] = "early",
    reference: Annotated[
        str,
        typer.Option(
            help="What plans are held against: auto, retrained, all_features or trajectory_end.",
            autocompletion=completion.complete(
                "auto", "retrained", "all_features", "trajectory_end"
            ),
        ),
    ] = "auto",
    committee: Annotated[
        int,
        typer.Option(
            help="Number of models learnt again that have a say in which plan survives; 0: none."
        ),
    ] = 12,
    min_survival: Annotated[
        float,
        typer.Option(
            help="Nobody is told to act on a plan whose estimated survival is below this."
        ),
    ] = 0.5,
    min_need: Annotated[
        float | None,
        typer.Option(
            help=(
                "Nobody is told to act whose chance of being refused without a "
                "plan is below this; 0.5 with --model."
            )
        ),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            help="A feature, such as sex: each group of people has a certificate of its own."
        ),
    ] = None,
    budget: Annotated[
        str, typer.Option(help="Largest cost of an interview: a share up to 1, an amount, or inf.")
    ] = "inf",
    threshold: Annotated[
        str | None,
        typer.Option(help="Probability of the favourable class that is needed, or balanced."),
    ] = None,
    ignore_directions: Annotated[
        bool,
        typer.Option(
            "--ignore-directions", help="Leave the directions of the card out of the model."
        ),
    ] = False,
    compare_free: Annotated[
        bool,
        typer.Option(
            "--compare-free", help="Measure what the directions of the card cost in AUROC."
        ),
    ] = False,
    rules: Annotated[
        Path | None,
        typer.Option(
            help="The operator's rules (.toml or .json): what no plan does, what is never asked."
        ),
    ] = None,
    cap: Annotated[int | None, typer.Option(help="Largest number of rows.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the split and the model.")] = 0,
    jobs: Annotated[
        int,
        typer.Option(
            help="Number of parallel jobs in the search for plans; -1 uses every processor."
        ),
    ] = -1,
    accept_guesses: Annotated[
        bool,
        typer.Option(
            "--accept-guesses", help="Go on with a card that still says guessed = true somewhere."
        ),
    ] = False,
    force: Annotated[bool, typer.Option(help="Replace an advisor that is already there.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fit, certify, evaluate and save an advisor: blanket, model, certificate, and results on
    held-out people.
    """
    from edfa.advice import compare
    from edfa.advice.advisor import Advisor
    from edfa.advice.persist import check_target_folder
    from edfa.advice.terms import check_group
    from edfa.advice.warnings import find_warnings
    from edfa.data.rules import Rules
    from edfa.writing import check_writable

    output = Output(as_json, quiet)
    if out.exists() and not force:
        raise typer.BadParameter(f"{out} is there already; --force replaces it", param_hint="--out")
    for option, given in {"--classes": classes, "--columns": columns, "--like": like}.items():
        if model is None and given is not None:
            raise typer.BadParameter(
                "it says something of a model of your own: --model", param_hint=option
            )
    check_writable(out, made=True)
    check_target_folder(out)
    chosen = {"policy": policy, "searcher": searcher, "signal": signal}
    settings: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    settings |= {"rules": None if rules is None else Rules.read(rules)}
    settings |= {"budget": _number(budget), "threshold": _number(threshold), "target": target}
    settings |= {
        "reference": reference,
        "committee": committee,
        "min_survival": min_survival,
        "groups": groups,
    }
    settings |= {"min_need": min_need}
    settings["obey_directions"] = not ignore_directions
    chosen_model = (
        predictor if model is None else own_model.wrap_file(model, partial, classes, columns, like)
    )
    advisor = Advisor(blanket, chosen_model, alpha=alpha, delta=delta, seed=seed, **settings)
    rows = open_table(table, schema, seed=seed, cap=cap)
    _check_guesses(rows.schema, accept_guesses, output)
    if groups is not None:
        check_group(groups, rows.schema)
    if compare_free:
        compare.check_comparable(rows.schema, advisor.obey_directions and model is None)
    if rules is not None:
        _check_rules(rules, settings["rules"], rows)
    with (
        show_progress(output) as progress,
        own_model.in_shell_words(),
        own_model.kept_warnings() as kept,
    ):
        advisor.fit(rows, progress=progress, n_jobs=jobs)
        advisor.save(out)
        compared = compare.compare_free(advisor.fitted, rows.test) if compare_free else None
    certificate = advisor.certificate if groups is None else advisor.certificates
    output.say(str(advisor.fitted.blanket), "", certificate.sentence, advisor.evaluation_.sentence)
    if advisor.evaluation_.groups and output.people:
        output.console.print(_group_table(advisor.evaluation_, str(groups)))
    results = {"directions": advisor.directions_, "compared": compared}
    if advisor.usage_ is not None:
        output.say(*advisor.usage_.sentences, f"While facts are missing: {advisor.fidelity_}.")
        output.say(f"Asked of the model: {advisor.fitted.model.asked_}.")
    checks = {name: check for name, check in results.items() if check is not None}
    output.say(*(check.sentence for check in checks.values()))
    warnings = (*kept, *find_warnings(rows, advisor.fitted.blanket, advisor.evaluation_))
    output.say(*(f"Warning: {warning}" for warning in warnings), style="yellow")
    output.say(f"saved to {out}", style="dim")
    output.write_json(
        out=str(out),
        advisor=advisor.fingerprint,
        blanket=json.loads(advisor.fitted.blanket.to_json()),
        **{"certificate" if groups is None else "certificates": json.loads(certificate.to_json())},
        evaluation=json.loads(advisor.evaluation_.to_json()),
        warnings=warnings,
        guesses=rows.schema.guessed,
        **{name: json.loads(check.to_json()) for name, check in checks.items()},
    )


def _group_table(evaluation: "AdvisorEvaluation", name: str) -> "RichTable":
    """What becomes of each group of people, a row each."""
    from rich.table import Table as RichTable

    grid = RichTable(box=None, pad_edge=False)
    for column in (
        name,
        "people",
        "cost",
        "with a plan",
        "told to act",
        "let down",
        "wasted",
        "changes",
        "effort",
    ):
        grid.add_column(column, justify="left" if column == name else "right")
    for label, group in evaluation.groups.items():
        acting = str(group.n) if group.certified else "no certificate"
        shares = ["" if share is None else f"{share:.1%}" for share in (group.risk, group.wasted)]
        means = ["" if mean is None else f"{mean:.2f}" for mean in (group.changes, group.effort)]
        coverage = "" if group.coverage is None else f"{group.coverage:.1%}"
        grid.add_row(
            escape(label), str(group.people), f"{group.cost:.2f}", coverage, acting, *shares, *means
        )
    return grid


def _check_guesses(schema: "Schema", accepted: bool, output: Output) -> None:
    """List what the draft of a card guessed and nobody confirmed; raise SchemaError unless that is
    accepted.
    """
    if not schema.guessed:
        return
    head = (
        f"Guessed by the draft of the card, {'and accepted' if accepted else 'and not confirmed'}:"
    )
    output.say(head, *(f"  {line}" for line in _guesses(schema)))
    if not accepted:
        count, first = len(schema.guessed), schema.guessed[0]
        more = f" and {count - 1} more" if count > 1 else ""
        raise SchemaError(
            f"the card's guesses about {first!r}{more} are not confirmed; check them and "
            "take `guessed = true` out, "
            "or go on with --accept-guesses"
        )


def _guesses(schema: "Schema") -> list[str]:
    """One line for each feature, or the outcome, with a guess: its name, and the keys that may be
    wrong.
    """
    lines = (
        [f"{schema.target}: classes {', '.join(schema.classes)}"] if schema.target_guessed else []
    )
    for feature in schema:
        if feature.guessed:
            keys = [feature.kind, feature.change, *(["sensitive"] if feature.sensitive else [])]
            keys += [f"monotone {feature.monotone}"] if feature.monotone else []
            lines.append(f"{feature.name}: {', '.join(keys)}")
    return lines


def _check_rules(path: Path, rules: "Rules", rows: "Table") -> None:
    """Refuse rules that do not fit the card or the table, in the name of their file."""
    from edfa.errors import EdfaError, SettingError

    try:
        everybody = rows.schema.rules_with(rules)
        everybody.check(rows.schema, rows.encoder)
        everybody.check_leaves_something(rows.schema)
    except EdfaError as error:
        raise SettingError(f"{path.name}: {error}") from None


def _number(text: str | None) -> float | str | None:
    """The text as a number if it is one; "inf" stays a word, which a budget understands."""
    try:
        return None if text is None else "inf" if text == "inf" else float(text)
    except ValueError:
        return text
