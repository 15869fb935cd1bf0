"""Placeholder of the sentences; the real module replaces it."""

from edfa.answers import Decision, Question
from edfa.certification.certificate import Certificate
from edfa.data.schema import Schema
from edfa.explanation.partition import Person
from edfa.recourse.plans import NoPlan, Plan

__all__ = ["certificate", "decision", "no_plan", "partition", "plan", "question"]


def decision(decision: Decision, schema: Schema, language: str = "en") -> str:
    """What is decided."""
    return f"The decision is {decision.outcome}; the probability of {schema.favourable} is {decision.probability:.0%}."


def question(question: Question, schema: Schema, language: str = "en") -> str:
    """What to tell next."""
    return f"Tell your {schema[question.feature].title}; it costs {question.cost:g}."


def plan(plan: Plan, schema: Schema, language: str = "en") -> str:
    """What to change."""
    return str(plan)


def no_plan(no_plan: NoPlan, schema: Schema, language: str = "en") -> str:
    """Why there is nothing to change."""
    return f"There is no plan: {no_plan.reason}."


def partition(partition: Person, schema: Schema, language: str = "en") -> list[str]:
    """What matters."""
    return [f"{name} can turn the decision." for name in partition.counterfactual]


def certificate(certificate: Certificate, language: str = "en") -> str:
    """The guarantee in words, or nothing."""
    return certificate.sentence if certificate.certified else ""
