"""What every face shows of an interview: page, API, notebook, terminal, letter and receipt.

``InterviewRecord`` is the main entry: the facts of an interview and the sentences about them.
Faces lay it out and say nothing of their own about a decision, a question or a plan.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from edfa.text import narrate
from edfa.text.phrases import say
from edfa.text.steps import Step, not_known, plan_steps

if TYPE_CHECKING:
    from edfa.advice.assessment import Decision, Question
    from edfa.advice.interview import Interview
    from edfa.advice.standing import Standing
    from edfa.data.schema import Schema
    from edfa.recourse.plans import NoPlan, Plan

PLANS_SHOWN = 3


@dataclass(frozen=True)
class PlanRecord:
    """A plan in words.

    Parameters
    ----------
    plan
        The plan.
    steps
        Its changes, one step each.
    text
        All of it as sentences.
    notes
        What speaks against relying on it, as sentences, without the shares of cases in which it
        fails.
    unknown
        Names of the facts that are not known and that the model would see.
    """

    plan: "Plan"
    steps: tuple[Step, ...]
    text: str
    notes: tuple[str, ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class InterviewRecord:
    """An interview as it stands, in facts and in the words of its language (``…_text``).

    Each part is made when it is looked at, once; only whether the interview may end may be found
    later and is looked up every time, with what depends on it.

    Where several endings are promised, no verdict is told before one is reached, or everything is
    asked: until then it is ``too_early``.

    Parameters
    ----------
    interview
        The interview; parts that were looked at do not follow later answers.
    k
        The largest number of plans.
    """

    interview: "Interview"
    k: int = PLANS_SHOWN

    @property
    def _words(self) -> "tuple[Schema, str]":
        return self.interview.fitted.schema, self.interview.language

    @cached_property
    def decision(self) -> "Decision":
        """What is decided from what is known."""
        return self.interview.decision

    @property
    def decision_text(self) -> str:
        """What is decided, or that it is too early to say, and the estimate."""
        if self.too_early:
            return narrate.too_early(self.decision, self.left, *self._words)
        return narrate.decision(self.decision, *self._words)

    @property
    def left(self) -> int:
        """The largest number of questions still to come."""
        return 0 if self.question is None else self.question.left

    @cached_property
    def several_endings(self) -> bool:
        """Whether people are promised more than that they may act."""
        return len(self.interview.fitted.promise.endings) > 1

    @property
    def too_early(self) -> bool:
        """Whether no verdict can be told yet."""
        return self.several_endings and not self.standing.ends

    @property
    def standing(self) -> "Standing":
        """Whether the interview may end now, and how."""
        return self.interview.standing

    @property
    def standing_text(self) -> str:
        """Whether the interview may end now and how, and if not, why not."""
        return " ".join(self.say_standing(self.standing))

    def say_standing(self, standing: "Standing", contact: str = "") -> list[str]:
        """A standing of this interview in words, with what an early end rests on, and what is left
        to somebody whom nothing helps.

        Parameters
        ----------
        standing
            Where the interview stands.
        contact
            Whom the person can talk to, in the operator's words; empty: nobody is named.
        """
        interview, (schema, language) = self.interview, self._words
        left = self.left if self.several_endings else None
        lines = [narrate.standing(standing, language, left=left)]
        if standing.promised and standing.status == "granted":
            seen = dict(zip(schema.names, interview.fitted.background.visible, strict=True))
            told = [name for name in interview.log.facts if seen[name]]
            turning = [*interview.partition.counterfactual]
            lines += narrate.conditions(turning, told, self.left, schema, language)
        if standing.status == "nothing":
            growing = interview.assessment.helped_by_time
            lines += narrate.come_again(growing, schema, language, contact)
        return lines

    @cached_property
    def question(self) -> "Question | None":
        """What to ask next; None: nothing more."""
        return self.interview.question

    @cached_property
    def reasons(self) -> list[str]:
        """Why the next question is asked, what may come of it, and how many are left; empty if
        there is none.
        """
        return [] if self.question is None else narrate.reasons(self.question, *self._words)

    @property
    def question_text(self) -> str:
        """The next question with its reasons; empty if there is none."""
        return "" if self.question is None else narrate.question(self.question, *self._words)

    @cached_property
    def plans(self) -> tuple[PlanRecord, ...]:
        """The plans that are offered, the best first."""
        return tuple(self._plan(plan) for plan in self.interview.plans(self.k))

    def _plan(self, plan: "Plan") -> PlanRecord:
        """A plan in words, under the operator's rules and the person's own locks."""
        seen, rules = self.interview.fitted.decisive, self.interview.fitted.rules
        locked, (schema, language) = self.interview.overlay.locked, self._words
        return PlanRecord(
            plan,
            tuple(plan_steps(plan, schema, language, operator=rules, blanket=seen)),
            narrate.plan(plan, schema, language, blanket=seen, locked=locked, operator=rules),
            tuple(narrate.reservations(plan, language, seen, shares=False)),
            tuple(not_known(plan, seen)),
        )

    @cached_property
    def no_plan(self) -> "NoPlan | None":
        """Why there is no plan; None if there is one."""
        return None if self.plans else self.interview.no_plan

    @property
    def no_plan_text(self) -> str:
        """The same in words; empty if there is a plan, or it is too early to say that none is
        needed.
        """
        rules, why = self.interview.fitted.rules, self.no_plan
        if why is None or (why.reason == "already_there" and self.too_early):
            return ""
        if why.reason == "more_information_needed" and self.standing.promised:
            why = replace(why, reason="nothing_flips")  # more would hardly change it
        return narrate.no_plan(why, *self._words, operator=rules)

    @property
    def facts(self) -> dict[str, str]:
        """A sentence for each feature that turns the decision by itself, or makes no difference as
        long as others are not known, by the feature's name.

        A feature is said to be in the person's hands if a plan that is offered changes it alone.
        """
        interview, alone = self.interview, [r.plan for r in self.plans if r.plan.l0 == 1]
        return narrate.single_facts(
            interview.partition,
            *self._words,
            favourable=self.decision.favourable and not self.too_early,
            blanket=interview.fitted.blanket,
            locked=(*interview.overlay.locked, *interview.fitted.rules.locked),
            planned=[plan.changes[0].feature for plan in alone],
        )

    def sentences(self) -> dict[str, list[str]]:
        """Everything there is to say, as sentences by section.

        Returns
        -------
        dict of str to list of str
            The sections ``decision``, ``standing``, ``question``, ``plans`` and ``partition``.
            Whoever is told an ending is asked nothing more: ``question`` is then empty.
        """
        interview, language = self.interview, self.interview.language
        plans = [record.text for record in self.plans]
        if len(plans) == 1 and self.k > 1:
            plans = [f"{plans[0]} {say('plan.only', language)}"]
        asking = [say("page.done", language)]
        if self.question is not None:
            asking = [self.question_text, narrate.answers(self.question, *self._words)]
        alone, together = self.facts.values(), narrate.together(interview.partition, *self._words)
        return {
            "decision": [self.decision_text, *(f"{flag}." for flag in interview.flags)],
            "standing": [self.standing_text, *filter(None, [interview.guarantee])],
            "question": [] if self.standing.promised else asking,
            "plans": plans or [*filter(None, [self.no_plan_text])],
            "partition": [*alone, *together],
        }
