"""``edfa interview`` asks one person in the terminal or reads a file of answers; ``edfa verify`` replays a receipt."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edfa.commands.common import EXIT_NO, AsJson, Folder, Output, Quiet, load_advisor, show_progress
from edfa.errors import EdfaError, SettingError, UnreadableError

if TYPE_CHECKING:
    from edfa.advice.interview import Interview

__all__ = ["interview", "verify"]

HELP = "Enter declines; :undo takes the last answer back, :plans shows plans, :stop ends."
Key = Annotated[Path | None, typer.Option(help="The operator's key file, of at least 16 bytes.")]


def interview(
    folder: Folder,
    answers: Annotated[
        Path | None,
        typer.Option(help="A .json or .toml file of answers by feature name, null to decline; nothing is asked then."),
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Continue an interview that --keep saved.")] = None,
    keep: Annotated[Path | None, typer.Option(help="Save the interview to this file, to continue later.")] = None,
    receipt: Annotated[Path | None, typer.Option(help="Write a receipt to this file.")] = None,
    key: Key = None,
    lock: Annotated[list[str] | None, typer.Option(help="A feature that must not change; may be repeated.")] = None,
    rules: Annotated[
        Path | None, typer.Option(help="The person's own limits, .toml or .json; they only tighten the operator's.")
    ] = None,
    plans: Annotated[int, typer.Option(help="Largest number of plans.")] = 3,
    language: Annotated[
        str | None, typer.Option(help="en or de; en unless given, a kept interview goes on in its own.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Interview one person: decision, next question and why, plans, and whether they may act now."""
    from edfa.advice.interview import Interview
    from edfa.advice.receipt import read_key
    from edfa.data.constraints import Constraints
    from edfa.reading import read_text
    from edfa.writing import write_text

    output = Output(as_json, quiet)
    for option, given in (("--rules", rules), ("--lock", lock)):
        if resume is not None and given:
            raise SettingError(f"{option}: set when an interview begins; --resume goes on with those it has")
    own = None if rules is None else Constraints.read(rules)
    secret = read_key(key) if key else None
    on_file = _read_answers(answers) if answers else None
    if on_file is None and not output.people:
        raise SettingError("--json and --quiet ask nothing; give the answers in a file: --answers FILE")
    advisor = load_advisor(folder)
    if resume is not None:
        current = Interview.from_json(read_text(resume), advisor, language=language)
    else:
        start = {n: on_file[n] for n in advisor.schema.start if on_file.get(n) is not None} if on_file else {}
        current = advisor.interview(start, locks=lock or (), constraints=own, language=language or "en")
    if on_file is not None:
        _answer_from_file(current, on_file)
    else:
        _Dialogue(current, output, plans).run()
    _print_state(current, output, plans)
    if keep is not None:
        write_text(keep, current.to_json())
    issued = current.receipt(k=plans, key=secret)
    if receipt is not None:
        write_text(receipt, issued.to_json())
        output.say(f"receipt: {receipt}", issued.sentence, style="dim")
    question = current.question
    output.write_json(**json.loads(issued.to_json()), next=asdict(question) if question else None)


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
    output.write_json(holds=verification.holds, outcome=verification.outcome, **asdict(verification))
    if not verification.holds:
        raise typer.Exit(EXIT_NO)


def _read_answers(path: Path) -> dict[str, Any]:
    """Answers by feature name from a JSON or TOML file; None declines."""
    from edfa.reading import parse_json, read_text

    text = read_text(path)
    try:
        answers = tomllib.loads(text) if path.suffix == ".toml" else parse_json(text, path.name)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UnreadableError(f"{path.name} is neither JSON nor TOML: {error}") from None
    if not isinstance(answers, Mapping):
        kind = type(answers).__name__
        raise UnreadableError(f"{path.name}: answers are an object of names and values, not a {kind}")
    return dict(answers)


def _answer_from_file(interview: "Interview", answers: Mapping[str, Any]) -> None:
    """Tell the start set and answer every question that the file has an answer to; other answers are not used."""
    schema = interview.fitted.schema
    for name in answers:
        schema.index(name)  # an unknown feature is an error before any question
    for name in schema.start:
        if name in answers and name not in {*interview.log.facts, *interview.log.declined}:
            _tell(interview, name, answers[name])
    while (question := interview.question) is not None and question.feature in answers:
        _tell(interview, question.feature, answers[question.feature])


def _tell(interview: "Interview", name: str, answer: Any) -> None:
    """Answer, or decline with None."""
    if answer is None:
        interview.decline(name)
    else:
        interview.answer({name: answer})


class _Dialogue:
    """Questions and answers in the terminal."""

    def __init__(self, interview: "Interview", output: Output, plans: int) -> None:
        self.interview, self.output, self.plans = interview, output, plans

    def run(self) -> None:
        """Ask for the start set, then what the policy asks, until nothing is left or the person stops."""
        from edfa.text import narrate

        self.output.say(HELP, style="dim")
        interview, schema, language = self.interview, self.interview.fitted.schema, self.interview.language
        while True:
            if (name := self._open_start) is not None:
                if not self._ask(name):
                    return
                continue
            if (question := interview.question) is None:
                return
            decision = narrate.decision(interview.decision, schema, language)
            standing = [narrate.standing(interview.standing, language)] if interview.standing.may_act else []
            self.output.say("", decision, *standing, narrate.question(question, schema, language))
            if question.choices:
                self.output.say(" | ".join(str(choice) for choice in question.choices), style="dim")
            if not self._ask(question.feature):
                return

    @property
    def _open_start(self) -> str | None:
        """The first feature of the start set that is neither told nor declined; what is taken back is open again."""
        interview = self.interview
        never = {*interview.fitted.rules.never_ask, *interview.constraints.never_ask}
        settled = {*interview.log.facts, *interview.log.declined, *never}
        return next((name for name in interview.fitted.schema.start if name not in settled), None)

    def _ask(self, name: str) -> bool:
        """Ask for one feature until it is answered, declined or taken back; False if the person stops."""
        feature = self.interview.fitted.schema[name]
        unit = f" ({feature.unit})" if feature.unit and not feature.words else ""
        while True:
            try:
                reply = input(f"{feature.title}{unit}: ").strip()
            except EOFError:
                reply = ":stop"
            if reply == ":stop":
                return False
            before = self.interview.flags
            try:
                if reply == ":undo":
                    self.interview.undo()
                elif reply == ":plans":
                    _print_state(self.interview, self.output, self.plans)
                    continue
                elif reply:
                    self.interview.answer({name: reply})
                else:
                    self.interview.decline(name)
            except EdfaError as error:
                self.output.say(str(error), style="red")
                continue
            self.output.say(*(flag for flag in self.interview.flags if flag not in before), style="yellow")
            return True


def _print_state(interview: "Interview", output: Output, plans: int) -> None:
    """Write the decision, what counts, the plans and whether the person may act."""
    from edfa.text.interview_page import interview_sentences

    with show_progress(output) as report:  # a certificate for this person's wishes may take seconds
        interview.progress = partial(report, "a promise for these wishes")
        sentences = interview_sentences(interview, plans)
    interview.progress = None
    output.say("", *sentences["decision"])
    output.say(*sentences["partition"], style="dim")
    output.say(*(f"• {text}" for text in sentences["plans"]))
    output.say(*sentences["standing"])
