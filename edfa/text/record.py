"""What every face shows of an interview: page, API, notebook, terminal, letter and receipt.

``InterviewRecord`` is the main entry: the facts of an interview and the sentences about them.
Faces lay it out and say nothing of their own about a decision, a question or a plan.
"""

from dataclasses import dataclass
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

    Each part is made when it is looked at, once; only whether the person may act may be found
    later and is looked up every time.

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

    @cached_property
    def decision_text(self) -> str:
        """What is decided, and the estimate."""
        return narrate.decision(self.decision, *self._words)

    @property
    def standing(self) -> "Standing":
        """Whether the person may act now."""
        return self.interview.standing

    @property
    def standing_text(self) -> str:
        """Whether the person may act now, and if not, why not."""
        return narrate.standing(self.standing, self.interview.language)

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
        """The same in words; empty if there is a plan."""
        rules = self.interview.fitted.rules
        if self.no_plan is None:
            return ""
        return narrate.no_plan(self.no_plan, *self._words, operator=rules)

    @cached_property
    def facts(self) -> dict[str, str]:
        """A sentence for each feature that turns the decision by itself, or makes no difference as
        long as others are not known, by the feature's name.

        A feature is said to be in the person's hands if a plan that is offered changes it alone.
        """
        interview, alone = self.interview, [r.plan for r in self.plans if r.plan.l0 == 1]
        return narrate.single_facts(
            interview.partition,
            *self._words,
            favourable=self.decision.favourable,
            blanket=interview.fitted.blanket,
            locked=(*interview.overlay.locked, *interview.fitted.rules.locked),
            planned=[plan.changes[0].feature for plan in alone],
        )

    def sentences(self) -> dict[str, list[str]]:
        """Everything there is to say, as sentences by section.

        Returns
        -------
        dict of str to list of str
            The sections ``decision``, ``standing``, ``question``, ``plans`` and ``partition``. A
            person who may act is asked nothing more: ``question`` is then empty.
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
            "question": [] if self.standing.may_act else asking,
            "plans": plans or [*filter(None, [self.no_plan_text])],
            "partition": [*alone, *together],
        }
