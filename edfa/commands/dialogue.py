"""The interview in a terminal: questions with their reasons, plans, and what is promised when the
person may act. ``Dialogue.run`` is the entry.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from edfa.advice.assessment import Question, possible_answers
from edfa.errors import DataError, FactError
from edfa.text import narrate, phrases
from edfa.text.answers_in_words import choice_keys, parse_answer, words_of
from edfa.text.phrases import say
from edfa.text.record import PLANS_SHOWN, InterviewRecord

if TYPE_CHECKING:
    from edfa.advice.interview import Interview

Style = Literal["plain", "strong", "dim", "warning", "error"]
CHOICES_SHOWN = 40  # of a longer list the rest is only counted


class Dialogue:
    """A conversation about one interview, over two functions, so that it needs no terminal.

    Parameters
    ----------
    interview
        The interview that is held; what it knows already is not asked for.
    ask
        Called with a prompt, returns what the person types; EOFError ends the questions.
    tell
        Called with a line for the person, and with what kind of line it is.
    plans
        Largest number of plans that are shown.

    Examples
    --------
    >>> import edfa
    >>> advisor = edfa.Advisor(predictor=edfa.SubsetXGB(n_estimators=20)).fit(edfa.load("german"))
    >>> typed, lines = iter(["radio", "2,400 DM", "35", ":stop"]), []
    >>> dialogue = Dialogue(advisor.interview({}), lambda prompt: next(typed), lambda line,
    ...     style: lines.append(line))
    >>> dict(dialogue.run().log.facts)
    {'purpose': 'radio/tv', 'credit_amount': 2400, 'age': 35}
    """

    def __init__(
        self,
        interview: "Interview",
        ask: Callable[[str], str],
        tell: Callable[[str, Style], object],
        plans: int = PLANS_SHOWN,
    ) -> None:
        self.interview, self.plans = interview, plans
        self.schema, self.language = interview.fitted.schema, interview.language
        # Plan and promise, as they stood when the interview could end and the person went on.
        self.printed: tuple[str, ...] = ()
        self._kept = "dialogue.kept"
        self._ask, self._tell = ask, tell

    def run(self) -> "Interview":
        """Ask until nothing is left, the person stops, or is told an ending and is content; then
        say where they stand.

        Returns
        -------
        Interview
            The interview, with all that was told.
        """
        self._say("dialogue.welcome", "dim")
        if self._ask_start():
            self._ask_on()
        self.summarise()
        return self.interview

    def summarise(self) -> None:
        """Tell the decision, what counts, the plans, and whether the person may act; and what was
        promised before.
        """
        sentences = InterviewRecord(self.interview, self.plans).sentences()
        self._lines("strong", "", *sentences["decision"])
        several = len(sentences["plans"]) > 1
        self._lines(
            "plain",
            *(f"{i}. {text}" if several else text for i, text in enumerate(sentences["plans"], 1)),
        )
        self._lines("strong", *sentences["standing"])
        self._lines("dim", *sentences["partition"])
        if self.printed:
            self._say(self._kept, "strong")
            self._lines("plain", *self.printed)

    def _ask_start(self) -> bool:
        """Ask for what is usually known from the start; False if the person stops."""
        interview, introduced = self.interview, False
        never = {*interview.fitted.rules.never_ask, *interview.overlay.never_ask}
        while True:
            known = {*interview.log.facts, *interview.log.declined, *never}
            name = next((name for name in interview.fitted.schema.start if name not in known), None)
            if name is None:
                return True
            if not introduced:
                self._say("dialogue.start", "dim")
                introduced = True
            answers = possible_answers(interview.fitted.encoder[name])
            question = Question(name, self.schema[name].cost, 0.0, "policy", **answers)
            if not self._answer(question, ""):
                return False

    def _ask_on(self) -> None:
        """Put the questions of the policy; who is told an ending is asked whether to go on all the
        same, once.
        """
        interview, words = self.interview, (self.schema, self.language)
        while (question := interview.question) is not None:
            if interview.standing.promised and not self.printed and not self._goes_on():
                return
            self._lines("plain", "", InterviewRecord(interview, self.plans).decision_text)
            if not self._answer(question, narrate.why(question, *words)):
                return

    def _goes_on(self) -> bool:
        """Show what the interview ends with, and what is promised, and ask whether the person goes
        on all the same.

        What was shown is told once more at the end if they do.
        """
        sentences = InterviewRecord(self.interview, self.plans).sentences()
        shown = (*sentences["plans"][:1], *sentences["standing"])
        self._lines("strong", "", *sentences["decision"])
        self._lines("plain", *shown)
        acting = self.interview.standing.may_act
        asked = say("dialogue.go_on" if acting else "dialogue.go_on_ending", self.language)
        reply = self._read(asked + " ")
        yes = (reply or "").casefold()[:1] in (say("dialogue.yes", self.language), "y")
        self.printed = shown if yes else ()
        self._kept = "dialogue.kept" if acting else "dialogue.kept_ending"
        return yes

    def _answer(self, question: Question, why: str) -> bool:
        """Ask one question until it is answered, declined or something is taken back.

        Parameters
        ----------
        question, why
            The question, and why it is asked; empty: there is no reason to tell.

        Returns
        -------
        bool
            False if the person stops.
        """
        interview, feature = self.interview, self.schema[question.feature]
        reason = why and say("dialogue.why", self.language, why=why)
        self._show(question, reason)
        while True:
            reply = self._read("> ")
            if reply is None or reply == ":stop":
                return False
            if reply in ("?", ":help"):
                self._say("dialogue.help", "plain")
                self._lines("plain", reason)
                self._say("question.declining", "plain")
            elif reply == ":plans":
                self.summarise()
            elif reply == ":undo":
                if self._undo():
                    return True
            elif not reply:
                interview.decline(feature.name)
                self._say("dialogue.declined", "dim")
                return True
            elif self._take(question, reply):
                value = phrases.value(feature, interview.log.facts[feature.name], self.language)
                label = phrases.plain(feature.said(self.language).label)
                self._lines("dim", say("dialogue.taken", self.language, label=label, value=value))
                return True

    def _take(self, question: Question, reply: str) -> bool:
        """Tell the interview what was typed.

        Parameters
        ----------
        question, reply
            What was asked, and what was typed: a value, a word for it, or the key of a choice.

        Returns
        -------
        bool
            Whether it could be understood; if not, what is wrong was told.
        """
        interview, feature, before = self.interview, question.feature, self.interview.flags
        try:
            value = parse_answer(reply, self.schema[feature], self.language, question.choices)
        except FactError as error:
            self._lines("error", str(error))
            return False
        try:
            interview.answer({feature: value})
        except FactError:
            answers = narrate.answers(question, self.schema, self.language)
            self._lines("error", say("dialogue.unusable", self.language, answers=answers).strip())
            return False
        self._lines("warning", *(f"{flag}." for flag in interview.flags if flag not in before))
        return True

    def _undo(self) -> bool:
        """Take the last answer back; whether there was one."""
        try:
            self.interview.undo()
        except DataError:
            self._say("dialogue.nothing_to_undo", "error")
            return False
        self._say("dialogue.undone", "dim")
        return True

    def _show(self, question: Question, reason: str) -> None:
        """Tell the question, a hint, the answers it may have, and why it is asked, in one block.

        Of more than ``CHOICES_SHOWN`` choices the rest is only counted.
        """
        feature, language = self.schema[question.feature], self.language
        self._lines("strong", "", narrate.ask(feature.name, self.schema, language))
        self._lines("plain", phrases.plain(feature.said(language).hint))
        choices = question.choices[:CHOICES_SHOWN]
        for key, choice in zip(choice_keys(question.choices), choices, strict=False):
            self._lines("plain", f"  {key}) {words_of(feature, choice, language)}")
        if more := len(question.choices) - len(choices):
            self._lines("plain", "  … " + say("others", language, n=more))
        if not choices:
            self._lines("plain", narrate.answers(question, self.schema, language))
        self._lines("dim", reason)

    def _read(self, prompt: str) -> str | None:
        """What the person types; None at the end of the input."""
        try:
            return self._ask(prompt).strip()
        except EOFError:
            return None

    def _say(self, key: str, style: Style) -> None:
        self._lines(style, say(key, self.language))

    def _lines(self, style: Style, *lines: str) -> None:
        """Tell lines of one style; an empty one that comes first separates blocks, other empty
        ones are left out.
        """
        for i, line in enumerate(lines):
            if line or (i == 0 and len(lines) > 1):
                self._tell(line, style)
