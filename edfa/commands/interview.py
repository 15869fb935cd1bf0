"""``edfa interview``: one person in the terminal, or from a file of answers; ``edfa verify``: a receipt held again."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edfa.commands.common import NO, AsJson, Folder, Output, Quiet, load_advisor
from edfa.errors import FactError, SettingError, UnknownNameError, UnreadableError

if TYPE_CHECKING:
    from edfa.advice.interview import Interview

__all__ = ["interview", "verify"]

HELP = "Enter declines; :undo takes the last answer back, :plans shows plans, :stop ends."
Key = Annotated[Path | None, typer.Option(help="The operator's key file, of at least 16 bytes.")]


def interview(
    folder: Folder,
    answers: Annotated[
        Path | None, typer.Option(help="A .json or .toml file of answers by name; null declines. No questions.")
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with an interview that was kept.")] = None,
    keep: Annotated[Path | None, typer.Option(help="Keep the interview, to go on with later.")] = None,
    receipt: Annotated[Path | None, typer.Option(help="Write a receipt.")] = None,
    key: Key = None,
    lock: Annotated[list[str] | None, typer.Option(help="A feature that must not change; may be repeated.")] = None,
    plans: Annotated[int, typer.Option(help="At most so many plans.")] = 3,
    language: Annotated[str, typer.Option(help="en or de.")] = "en",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Interview one person: decision, next question and why, plans, and whether they may act now."""
    from edfa.advice.interview import Interview
    from edfa.advice.receipt import read_key
    from edfa.artifacts import write_text

    output = Output(as_json, quiet)
    secret = read_key(key) if key else None
    given = _answers(answers) if answers else None
    if given is None and not output.people:
        raise SettingError("--json and --quiet ask nothing; give the answers in a file: --answers FILE")
    advisor = load_advisor(folder)
    if resume is not None:
        held = Interview.from_json(_text(resume), advisor)
    else:
        start = {name: given.pop(name) for name in advisor.schema.start if given.get(name) is not None} if given else {}
        held = advisor.interview(start, locks=lock or (), language=language)
    if given is not None:
        _from_file(held, given)
    else:
        _Talk(held, output, plans).go()
    _show(held, output, plans)
    if keep is not None:
        write_text(keep, held.to_json())
    made = held.receipt(k=plans, key=secret)
    if receipt is not None:
        write_text(receipt, made.to_json())
        output.say(f"receipt: {receipt}", made.sentence, style="dim")
    output.tell(**json.loads(made.to_json()), next=asdict(held.question) if held.question else None)


def verify(
    folder: Folder,
    receipt: Annotated[Path, typer.Argument(help="A receipt.")],
    key: Key = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Replay a receipt and say what differs; exit code 3 where it does not hold."""
    from edfa.advice.receipt import read_key

    output = Output(as_json, quiet)
    found = load_advisor(folder).verify(_text(receipt), read_key(key) if key else None)
    output.say(str(found))
    output.tell(holds=found.holds, **asdict(found))
    if not found.holds:
        raise typer.Exit(NO)


def _text(path: Path) -> str:
    from edfa.data.read import existing

    return existing(path).read_text(encoding="utf-8")


def _answers(path: Path) -> dict[str, Any]:
    """Answers by name, from JSON or TOML."""
    text = _text(path)
    try:
        told = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except ValueError as error:
        raise UnreadableError(f"{path.name} is neither JSON nor TOML: {error}") from None
    if not isinstance(told, Mapping):
        raise UnreadableError(f"{path.name}: answers are an object of names and values, not a {type(told).__name__}")
    return dict(told)


def _from_file(held: "Interview", given: Mapping[str, Any]) -> None:
    """Ask as long as the file has an answer. What is never asked is not told."""
    for name in given:
        held.fitted.schema.index(name)
    while (asked := held.question) is not None and asked.feature in given:
        value = given[asked.feature]
        if value is None:
            held.decline(asked.feature)
        else:
            held.answer({asked.feature: value})


class _Talk:
    """Questions in the terminal."""

    def __init__(self, held: "Interview", output: Output, plans: int) -> None:
        self.held, self.output, self.plans = held, output, plans

    def go(self) -> None:
        """The start set, then what the policy asks, until there is nothing more or the person stops."""
        from edfa.text import narrate

        self.output.say(HELP, style="dim")
        schema = self.held.fitted.schema
        for name in schema.start:
            if name not in self.held.log.facts and not self._ask(name):
                return
        while (asked := self.held.question) is not None:
            decided = narrate.decision(self.held.decision, schema, self.held.language)
            now = [narrate.standing(self.held.standing, self.held.language)] if self.held.standing.may_act else []
            self.output.say("", decided, *now, narrate.question(asked, schema, self.held.language))
            if asked.choices:
                self.output.say(" | ".join(str(choice) for choice in asked.choices), style="dim")
            if not self._ask(asked.feature):
                return

    def _ask(self, name: str) -> bool:
        """One question until it is answered, declined or taken back; false: the person stops."""
        feature = self.held.fitted.schema[name]
        while True:
            unit = f" ({feature.unit})" if feature.unit and not feature.words else ""
            try:
                said = input(f"{feature.title}{unit}: ").strip()
            except EOFError:
                said = ":stop"
            if said == ":stop":
                return False
            try:
                if said == ":undo":
                    self.held.undo()
                elif said == ":plans":
                    _show(self.held, self.output, self.plans)
                    continue
                elif said:
                    self.held.answer({name: said})
                else:
                    self.held.decline(name)
            except (FactError, UnknownNameError) as error:
                self.output.say(str(error), style="red")
                continue
            return True


def _show(held: "Interview", output: Output, plans: int) -> None:
    """Where the person stands."""
    from edfa.text.interview_page import told

    said = told(held, plans)
    output.say("", *said["decision"])
    output.say(*said["partition"], style="dim")
    output.say(*(f"• {text}" for text in said["plans"]))
    output.say(*said["standing"])
