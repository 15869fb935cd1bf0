"""``edfa interview`` asks one person in the terminal or reads a file of answers; ``edfa verify``
replays a receipt.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edfa.commands.common import EXIT_NO, AsJson, Folder, Output, Quiet, load_advisor, show_progress
from edfa.commands.completion import complete
from edfa.errors import SettingError, UnreadableError

if TYPE_CHECKING:
    from edfa.advice.interview import Interview

STYLES = {"plain": None, "strong": "bold", "dim": "dim", "warning": "yellow", "error": "red"}
Key = Annotated[Path | None, typer.Option(help="The operator's key file, of at least 16 bytes.")]


def interview(
    folder: Folder,
    answers: Annotated[
        Path | None,
        typer.Option(
            help=(
                "A .json or .toml file of answers by feature name, null to "
                "decline; all are told, and nothing is asked."
            )
        ),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Continue an interview that --keep saved.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Save the interview to this file, to continue later.")
    ] = None,
    receipt: Annotated[Path | None, typer.Option(help="Write a receipt to this file.")] = None,
    key: Key = None,
    lock: Annotated[
        list[str] | None, typer.Option(help="A feature that must not change; may be repeated.")
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(
            help="The person's own limits, .toml or .json; they only tighten the operator's."
        ),
    ] = None,
    plans: Annotated[int, typer.Option(help="Largest number of plans.")] = 3,
    language: Annotated[
        str | None,
        typer.Option(
            help="en or de; en unless given, a kept interview goes on in its own.",
            autocompletion=complete("en", "de"),
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Interview one person: decision, next question and why, plans, and whether they may act
    now.
    """
    from edfa.advice.interview import Interview
    from edfa.advice.receipt import read_key
    from edfa.data.rules import NO_OVERLAY, Overlay
    from edfa.reading import read_text
    from edfa.writing import write_text

    output = Output(as_json, quiet)
    for option, given in (("--rules", rules), ("--lock", lock)):
        if resume is not None and given:
            raise SettingError(
                f"{option}: set when an interview begins; --resume goes on with those it has"
            )
    overlay = NO_OVERLAY if rules is None else Overlay.read(rules)
    overlay = overlay.tighten(Overlay(locked=tuple(lock or ())))
    secret = read_key(key) if key else None
    on_file = _read_answers(answers) if answers else None
    if on_file is None and not output.people:
        raise SettingError(
            "--json and --quiet ask nothing; give the answers in a file: --answers FILE"
        )
    advisor = load_advisor(folder)
    if resume is not None:
        current = Interview.from_json(read_text(resume), advisor, language=language)
    else:
        facts = on_file or {}
        start = {n: facts[n] for n in advisor.schema.start if facts.get(n) is not None}
        current = advisor.interview(start, overlay=overlay, language=language or "en")
    if on_file is not None:
        _answer_from_file(current, on_file)
        _print_state(current, output, plans)
    else:
        _hold(current, output, plans)
    if keep is not None:
        write_text(keep, current.to_json())
    issued = current.receipt(k=plans, key=secret)
    if receipt is not None:
        write_text(receipt, issued.to_json())
        output.say(f"receipt: {receipt}", issued.sentence, style="dim")
    question = current.question
    output.write_json(issued, next=asdict(question) if question else None)


def verify(
    folder: Folder,
    receipt: Annotated[Path, typer.Argument(help="The file of a receipt.")],
    key: Key = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Replay a receipt and report what differs; exit code 3 if it does not hold."""
    from edfa.advice.receipt import read_key
    from edfa.reading import read_text

    output = Output(as_json, quiet)
    verification = load_advisor(folder).verify(read_text(receipt), read_key(key) if key else None)
    output.say(str(verification))
    output.write_json(
        holds=verification.holds, outcome=verification.outcome, **asdict(verification)
    )
    if not verification.holds:
        raise typer.Exit(EXIT_NO)


def _read_answers(path: Path) -> dict[str, Any]:
    """Answers by feature name from a JSON or TOML file; None declines."""
    from edfa.reading import parse_json, parse_toml, read_text

    text = read_text(path)
    if path.suffix == ".toml":
        return parse_toml(text, path.name, UnreadableError)
    answers = parse_json(text, path.name)
    if not isinstance(answers, Mapping):
        raise UnreadableError(
            f"{path.name}: answers are an object of names and values, not a "
            f"{type(answers).__name__}"
        )
    return dict(answers)


def _answer_from_file(interview: "Interview", answers: Mapping[str, Any]) -> None:
    """Tell everything that is in the file, so that the decision is that of all facts given.

    What the interview knows already is passed over; a fact that contradicts it is an error. First
    comes the start set, then what the interview asks for, in its order, then all other facts.
    """
    log = interview.log
    pending = dict(answers)
    for name, answer in answers.items():
        log.check_name(name)
        told = name in log.facts and log.check_value(name, answer) == log.facts[name]
        if told or (name in log.declined and answer is None):
            del pending[name]
    for name in interview.fitted.schema.start:
        if name in pending:
            _tell(interview, name, pending.pop(name))
    while (question := interview.question) is not None and question.feature in pending:
        _tell(interview, question.feature, pending.pop(question.feature))
    unasked = {name: answer for name, answer in pending.items() if answer is not None}
    if unasked:
        interview.answer(unasked)
    for name in (name for name in pending if name not in unasked):
        interview.decline(name)


def _tell(interview: "Interview", name: str, answer: Any) -> None:
    """Answer a feature, or decline it with None."""
    if answer is None:
        interview.decline(name)
    else:
        interview.answer({name: answer})


def _hold(interview: "Interview", output: Output, plans: int) -> None:
    """Hold the interview in the terminal; it ends with a summary."""
    from edfa.commands.dialogue import Dialogue

    def tell(line: str, style: str) -> None:
        output.say(line, style=STYLES[style])

    show: Callable[[str, int, int], None] | None = None
    with ExitStack() as bar:

        def report(
            done: int, total: int
        ) -> None:  # a certificate for this person's wishes may take seconds
            nonlocal show
            show = show or bar.enter_context(show_progress(output))
            show("a promise for these wishes", done, total)
            if done >= total:  # the bar goes before the next question
                bar.close()
                show = None

        interview.progress = report
        Dialogue(interview, input, tell, plans).run()
    interview.progress = None


def _print_state(interview: "Interview", output: Output, plans: int) -> None:
    """Write the decision, what counts, the plans and whether the person may act.

    Parameters
    ----------
    interview, output
        The interview, and where it is written.
    plans
        The largest number of plans.
    """
    from edfa.text.record import InterviewRecord

    with show_progress(output) as report:  # a certificate for this person's wishes may take seconds
        interview.progress = partial(report, "a promise for these wishes")
        sentences = InterviewRecord(interview, plans).sentences()
    interview.progress = None
    output.say("", *sentences["decision"])
    output.say(*sentences["partition"], style="dim")
    output.say(*(f"• {text}" for text in sentences["plans"]))
    output.say(*sentences["standing"])
