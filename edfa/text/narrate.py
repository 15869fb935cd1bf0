"""What a person is told, in sentences: decision, question, plan, partition, certificate, standing.

Each function takes an object that has been worked out (a ``Decision``, a ``Plan``), the card
with the words of the features, and a language ("en" or "de"), and gives one or several sentences
from ``edfa/text/sentences/``. Nothing is computed here and nothing is random: the same objects
give the same sentences. The choice of a sentence depends on what the person can do: a sensitive,
frozen or locked feature is never presented as a step to take. ``edfa.text.record`` makes all of
them for an interview.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Literal

from edfa.data.schema import Schema
from edfa.text import phrases
from edfa.text.limits import in_words, is_among, loosened
from edfa.text.phrases import MAX_LISTED, Conjunction, label, listed, say
from edfa.text.steps import not_known, plan_steps, say_steps, shortened, told, what_if

if TYPE_CHECKING:
    from edfa.advice.assessment import Decision, Question
    from edfa.advice.standing import Standing
    from edfa.blanket.units import Blanket
    from edfa.certification.certificate import Certificate
    from edfa.data.rules import Rules
    from edfa.explanation.partition import Person
    from edfa.recourse.plans import NoPlan, Plan


def decision(decision: "Decision", schema: Schema, language: str = "en") -> str:
    """What the model decides, the probability of the favourable class, and the probability that is
    needed.

    Parameters
    ----------
    decision
        What is decided from what is known.
    schema
        The card, which says what the classes mean.
    language
        "en" or "de".

    Returns
    -------
    str
        Two sentences: the decision and the estimate.

    Examples
    --------
    >>> from edfa import Feature
    >>> from edfa.advice.assessment import Decision
    >>> schema = Schema((Feature("age", "continuous"),), "class", "good", ("bad", "good"))
    >>> decision(Decision(0.31, "bad", favourable=False), schema)
    'From what is known so far, the decision is “bad”. Our estimate for “good” is 31 of 100.'
    """
    key = "decision.favourable" if decision.favourable else "decision.refused"
    outcome = phrases.plain(schema.outcome(decision.outcome, language))
    return f"{say(key, language, outcome=outcome)} {estimate(decision, schema, language)}"


def too_early(decision: "Decision", left: int, schema: Schema, language: str = "en") -> str:
    """That no decision can be told yet, with the estimate so far.

    Parameters
    ----------
    decision
        What is decided from what is known; only its estimate is told.
    left
        The largest number of questions still to come.
    schema, language
        As in ``decision``.
    """
    return f"{say('decision.too_early', language, left)} {estimate(decision, schema, language)}"


def estimate(decision: "Decision", schema: Schema, language: str = "en") -> str:
    """The probability of the favourable class in words, and the probability that is needed.

    The probability is told as a number out of 100, with as many digits as it takes to tell it
    from the threshold. Where a user model decides and not everything is known, it is told as a
    number of people like this one instead, for whom the decision is the favourable one.

    Parameters
    ----------
    decision, schema, language
        As in ``decision``.
    """
    wanted = phrases.plain(schema.outcome(schema.favourable, language))
    if decision.cases is not None:
        count = phrases.number(round(decision.probability * decision.cases), language)
        cases = phrases.number(decision.cases, language)
        return say("decision.cases", language, cases=cases, count=count, wanted=wanted)
    key, needed = "decision.estimate", ""
    if decision.threshold is not None:
        # a tie goes against the person
        tie = not decision.favourable and decision.probability >= decision.threshold
        key = "decision.more" if tie else "decision.threshold"
        needed = phrases.hundredths(decision.probability, decision.threshold, language)[1]
    words = {"chance": chance(decision, language), "needed": needed, "wanted": wanted}
    return say(key, language, **words)


def chance(decision: "Decision", language: str = "en") -> str:
    """The probability of the favourable class out of 100; what is refused is not rounded up to what
    is needed.

    Parameters
    ----------
    decision
        What is decided; without a threshold the probability is rounded to a whole number.
    language
        "en" or "de".

    Examples
    --------
    >>> from edfa.advice.assessment import Decision
    >>> chance(Decision(0.695, "bad", favourable=False, threshold=0.7))
    '69.5'
    """
    if decision.threshold is None:
        return phrases.in_hundred(decision.probability, language)
    return phrases.hundredths(decision.probability, decision.threshold, language)[0]


def question(question: "Question", schema: Schema, language: str = "en") -> str:
    """What is asked next, why, what the answer may unlock, and what it costs.

    Parameters
    ----------
    question
        The question, with its reason, cost and choices.
    schema
        The card, which has the words of the features.
    language
        "en" or "de".
    """
    return f"{ask(question.feature, schema, language)} {why(question, schema, language)}"


def ask(name: str, schema: Schema, language: str = "en") -> str:
    """The question for a feature as its card puts it; where it does not, a request for the label.

    Parameters
    ----------
    name
        The feature's name.
    schema
        The card.
    language
        "en" or "de".

    Examples
    --------
    >>> from edfa import Feature
    >>> ask("age", Schema((Feature("age", "continuous"),), "class", "good"))
    'Please tell us next: “age”.'
    """
    feature = schema[name]
    return phrases.plain(feature.said(language).ask) or say(
        "question.ask", language, label=label(feature, language)
    )


def why(question: "Question", schema: Schema, language: str = "en") -> str:
    """Why a question is asked, what the answer may unlock, what it costs, and how many questions
    are left.
    """
    return " ".join(reasons(question, schema, language))


def reasons(question: "Question", schema: Schema, language: str = "en") -> list[str]:
    """What ``why`` says, as a list of sentences.

    The first is the reason; then, where they apply, what may begin to count after the answer and
    that the fact is a sensitive one; then the cost, and last how many questions are left.
    """
    sentences = [_reason(question, schema, language)]
    if question.unlocks:
        unlocked = _labels(question.unlocks, schema, language)
        sentences.append(say("question.unlocks", language, labels=unlocked))
    if schema[question.feature].sensitive:
        sentences.append(say("question.sensitive", language))
    cost, spent = (phrases.number(amount, language) for amount in (question.cost, question.spent))
    key = "question.cost" if question.cost else "question.free"
    sentences.append(say(key, language, cost=cost, spent=spent))
    return [*sentences, say("question.left", language, question.left)]


def _reason(question: "Question", schema: Schema, language: str) -> str:
    """Why this question is asked, as one sentence.

    Where survival is the reason, it is told in how many of 100 or 1000 cases the plan holds now
    and with the answer; if neither total tells the two apart, in words alone.
    """
    if question.why == "survival":
        now, then = question.survival_now or 0.0, question.survival_then or 0.0
        counted = phrases.counts(now, then) if then > now else None
        if counted is None:
            return say("question.lasting", language)
        total, (few, many) = counted
        cases = say(phrases.CASES[total], language, n=many)
        # without an answer nobody might be given advice
        return say("question.survival" if now else "question.first", language, now=few, then=cases)
    if question.why == "endings":
        told = "" if not question.ended_by else phrases.in_hundred(question.ended_by, language)
        return say("question.endings" if told else "question.tells", language, n=told)
    if question.why == "spouse" and question.unit is not None:
        return say("question.spouse", language, unit=label(schema[question.unit], language))
    why = "unattached" if question.why == "spouse" else question.why
    return say(f"question.{why}", language)


def answers(question: "Question", schema: Schema, language: str = "en") -> str:
    """The possible answers to a question.

    Returns
    -------
    str
        The levels as a list in words; for a number, its range, whose ends are told in three
        significant digits unless they are whole; empty if neither is given.
    """
    feature = schema[question.feature]
    if question.choices:
        values = [phrases.value(feature, choice, language) for choice in question.choices]
        choices = listed(values, language, "or", max_listed=len(values))
        return say("question.choices", language, values=choices)
    if question.low is None or question.high is None:
        return ""
    low = phrases.number(shortened(feature, question.low, 0), language)
    # what is told a hair outside is taken at the edge
    return say(
        "question.numbers", language, low=low, high=told(feature, question.high, 0, language)
    )


def plan(
    plan: "Plan",
    schema: Schema,
    language: str = "en",
    *,
    blanket: "Blanket | None" = None,
    locked: Collection[str] = (),
    operator: "Rules | None" = None,
) -> str:
    """A plan in sentences: its changes with their ranges and units, how long it takes, the decision
    that it leads to, how people fared who are like that, and what could still overturn it.

    Parameters
    ----------
    plan
        The plan.
    schema
        The card, which has the words of the features and says which of them can change.
    language
        "en" or "de".
    blanket
        The features that the model sees, if it does not see all: only unknown members of it are
        counted as what could overturn the plan.
    locked
        Names of features that the person or the operator keeps as they are. A plan that changes
        one of them, or one that nobody can change, is described as an observation, not as
        advice.
    operator
        The operator's rules, by default the card's; they say what grows by itself, so that it is
        waited for.

    Returns
    -------
    str
        All sentences, separated by spaces.
    """
    fixed = [
        c.feature for c in plan.changes if c.feature in locked or not schema[c.feature].actionable
    ]
    reached = phrases.plain(schema.outcome(plan.reached, language))
    if fixed:
        supposed = [what_if(change, schema, language) for change in plan.changes]
        words = {
            "reached": reached,
            "labels": _labels(fixed, schema, language),
            "changes": listed(supposed, language, max_listed=len(supposed)),
        }
        return say("plan.hypothetical", language, **words)
    steps = plan_steps(plan, schema, language, operator=operator, blanket=blanket)
    before, after = phrases.hundredths(plan.probability_before, plan.probability_after, language)
    lead = "plan.lead"
    if plan.survival is not None:  # a plan chosen to last need not be minimal
        lead = "plan.lasting" if not_known(plan, blanket) else "plan.together"
    if any(step.today for step in steps):  # less would be enough today
        lead = "plan.reserve"
    if plan.survival is not None and plan.survival < 1 / 2:
        lead = "plan.doubtful"
    sentences = [say(lead, language, len(steps), changes=say_steps(steps, language))]
    if plan.months and not all(step.time for step in steps):
        time = phrases.duration(plan.months, language)
        sentences.append(say("plan.takes", language, time=time))
    sentences.append(say("plan.outcome", language, reached=reached, before=before, after=after))
    sentences += [*_support(plan, language), *reservations(plan, language, blanket)]
    return " ".join(sentences)


def _support(plan: "Plan", language: str) -> list[str]:
    """How many training people are like this person with the plan made, and how they fared; no
    sentence if they were not counted.
    """
    if plan.support is None:
        return []
    if not plan.support or plan.support_share is None:
        return [say("plan.nobody", language)]
    well = phrases.number(round(plan.support * plan.support_share), language)
    return [say("plan.support", language, plan.support, well=well)]


def reservations(
    plan: "Plan", language: str, blanket: "Blanket | None" = None, *, shares: bool = True
) -> list[str]:
    """What speaks against relying on a plan, as a list of sentences; empty if nothing does.

    These are: that the plan is no longer valid, that hardly anybody has such a combination, in
    how many cases it fails if it is met only roughly and in how many it survives, and how many
    facts are not known.

    Parameters
    ----------
    plan
        The plan.
    language
        "en" or "de".
    blanket
        As in ``plan``.
    shares
        Whether to say in how many cases the plan fails or survives.
    """
    sentences = [] if plan.valid else [say("plan.stale", language)]
    if plan.inlier is False:
        sentences.append(say("plan.rare", language))
    unknown = not_known(plan, blanket)
    certain = plan.survival == 1 and not unknown  # all is known, and all models agree
    survival = (
        None if certain or plan.survival == plan.probability_after else plan.survival
    )  # or it was just said
    rates = (("plan.rough", plan.invalidation), ("plan.survival", survival)) if shares else ()
    for key, share in rates:
        cases = None if share is None else phrases.cases(language, share)
        sentences += [say(key, language, cases=cases[0])] if cases else []
    return [*sentences, say("plan.unknown", language, len(unknown))] if unknown else sentences


def no_plan(
    no_plan: "NoPlan",
    schema: Schema,
    language: str = "en",
    *,
    operator: "Rules | None" = None,
) -> str:
    """Why there is no plan, and what may lead to one.

    The person's own limits are named, with the smallest loosening of them that would give a
    plan. The operator's rules are not the person's to loosen: that they stand in the way is all
    that is said.

    Parameters
    ----------
    no_plan
        The reason, the rules that stand in the way, and what would give a plan.
    schema
        The card.
    language
        "en" or "de".
    operator
        The operator's rules; by default the card's.
    """
    labels = _labels(no_plan.unlock, schema, language, "or")
    why = say(f"no_plan.{no_plan.reason}", language, labels=labels)
    theirs = schema.rules if operator is None else operator
    mine = [rule for rule in no_plan.rules if not is_among(rule, theirs)]
    if not mine:
        return why
    limits = listed([in_words(rule, schema, language) for rule in mine], language)
    sentences = [why, say("no_plan.limits", language, limits=limits)]
    if no_plan.loosening and len(mine) == len(no_plan.rules):
        sentences.append(loosened(mine, no_plan.loosening, schema, language))
    return " ".join(sentences)


def single_facts(
    person: "Person",
    schema: Schema,
    language: str,
    *,
    favourable: bool = False,
    blanket: "Blanket | None" = None,
    locked: Collection[str] = (),
    planned: Collection[str] = (),
) -> dict[str, str]:
    """A sentence for each feature that turns the decision by itself, or makes no difference as long
    as others are not known.

    Parameters
    ----------
    person
        The person's partition: which features can turn the decision, and which cannot and why.
    schema, language
        The card, and "en" or "de".
    favourable
        Whether the decision is the favourable one: who has it is not told how to turn it.
    blanket
        The units of the blanket, which say for which known fact another one is waited for.
    locked
        Names of features that stay as they are.
    planned
        Names of features that are changed by themselves in a plan that is offered. Only these
        are said to be in the person's hands: rules may forbid all that would turn the decision.

    Returns
    -------
    dict of str to str
        The sentence by the name of the feature, in the card's order.
    """
    sentences = {}
    for feature in schema:
        name, words = feature.name, {"label": label(feature, language), "share": "", "heads": ""}
        if name in person.counterfactual:
            words["share"] = phrases.in_hundred(person.counterfactual[name], language)
            turns = "turns" if name in planned else "could_turn"
            can_change = feature.actionable and name not in locked
            key = "weighs" if not can_change else "against" if favourable else turns
        elif name in person.violations:
            key = "violation"
        elif person.semifactual.get(name) == "blocked":
            units = blanket.units.items() if blanket else ()
            children = [child for child, spouses in units if name in spouses]
            words["heads"] = _labels(children, schema, language, "or")
            key = "blocked" if children else "blocked_alone"
        else:
            continue
        sentences[name] = say(f"partition.{key}", language, **words)
    return sentences


def together(person: "Person", schema: Schema, language: str) -> list[str]:
    """What is said of several features at once, as a list of at most three sentences.

    They are about the features that do not turn the decision by themselves, those that are not
    known, and those that made no difference; none is said of an empty group. Parameters as in
    ``single_facts``.
    """
    waits, sentences = person.semifactual, []
    groups = {
        "holds": [name for name in schema.names if waits.get(name) == "not_decisive"],
        "not_known": [name for name, reason in waits.items() if reason == "not_known"],
        "no_matter": [name for name in person.alterfactual if name not in person.violations],
    }
    for key, names in groups.items():
        if names:
            count = None if key == "not_known" else len(names)
            labels = _labels(names, schema, language, max_listed=len(names))
            sentences.append(say(f"partition.{key}", language, count, labels=labels))
    return sentences


def certificate(
    certificate: "Certificate",
    language: str = "en",
    *,
    made_for: Literal["known", "wishes"] | None = None,
) -> str:
    """The guarantee in a person's words; empty if nothing is certified.

    ``Certificate.sentence`` has the exact words for the record.

    Parameters
    ----------
    certificate
        The certificate.
    language
        "en" or "de".
    made_for
        Whether it was made on the spot: for what is "known" of the person, or for their
        "wishes". None: it is the advisor's own.

    Returns
    -------
    str
        What is promised, to whom, what it does not say, and how sure it is.
    """
    c = certificate
    if not c.certified:
        return ""
    acting = c.target in ("early", "act")  # the promise is to people who are told to act
    let_down, of_ending = c.loss == "let_down", c.family_delta is not None
    group = None if c.group is None else phrases.quoted(c.group, language)
    parts = {
        "whom": say(f"certificate.{c.loss}.{c.target}", language),
        "later": say(f"certificate.{c.loss}.{c.reference}", language),
        "within": say("certificate.within", language, group=group) if group else "",
        **_of_people(c.alpha, language),
    }
    sentences = [say(f"certificate.{c.loss}.promise", language, **parts)]
    cases = phrases.cases(language, c.wasted) if let_down and c.wasted else None
    if cases:
        sentences.append(say("certificate.wasted", language, cases=cases[0]))
    if not let_down and not of_ending and c.target != "early":
        # A promise to all can be kept although many who act early are let down; they must not take
        # it for their own.
        sentences.append(say("certificate.everybody", language))
    if c.rules:
        sentences.append(say("certificate.rules", language))
    people = c.n  # on whom the test rests
    if (let_down or of_ending) and acting:
        sentences.append(say("certificate.no_credit", language))
        people = c.n if c.triggered is None else round(c.triggered * c.n)
    number, delta = phrases.number(people, language), c.family_delta or c.delta
    sure = "certificate.sure_together" if of_ending else "certificate.sure"
    sentences.append(say(sure, language, people=number, **_of_people(delta, language)))
    if made_for is not None:
        sentences.append(say(f"certificate.{made_for}", language))
    return " ".join(sentences)


def _of_people(share: float, language: str) -> dict[str, str]:
    """A share exactly, as ``n`` of ``total``: 20 of 100, or 125 of 1000.

    Both numbers are in words of the language, for the placeholders of a sentence. A share that
    is no whole number out of 10,000 has its decimals in ``n``, out of 100.
    """
    total = next(
        (total for total in (100, 1000, 10_000) if round(share * total, 9).is_integer()), 100
    )
    return {
        "n": phrases.number(round(share * total, 9), language),
        "total": phrases.number(total, language),
    }


def standing(standing: "Standing", language: str = "en", *, left: int | None = None) -> str:
    """Whether the interview may end now and how, and if not, why not.

    Parameters
    ----------
    standing
        The status, and how the person's way differs from the one that the certificate speaks of.
    language
        "en" or "de".
    left
        The largest number of questions still to come, where several endings are promised; None:
        people are told nothing else than whether they may act.

    Returns
    -------
    str
        One sentence or two.
    """
    # Whoever declines is asked in another order from there on; one of the two is enough to say.
    deviations = [
        d for d in standing.deviations if d != "order" or "declined" not in standing.deviations
    ]
    several, status = left is not None, standing.status
    if several and (status == "ask" or (status == "not_certified" and left)):
        return say(f"standing.ask_{standing.ending or 'nothing'}", language, left)
    key: str = "granted_early" if standing.promised and status == "granted" else status
    if several and (status == "no_plan" or (status == "pending" and standing.ending != "act")):
        key = {"no_plan": "none_found", "pending": "pending_ending"}[status]
    why = ["passed_ending" if several and name == "passed" else name for name in deviations]
    reasons = listed([say(f"deviations.{name}", language) for name in why], language)
    return say(f"standing.{key}", language, reasons=reasons, since=standing.since)


def conditions(
    turning: Collection[str], told: Collection[str], left: int, schema: Schema, language: str
) -> list[str]:
    """What a yes that is told early rests on, and what could overturn it, as two sentences.

    Parameters
    ----------
    turning
        Names of the known features that can turn the decision by themselves.
    told
        Names of all features that are known and that the model looks at.
    left
        How many facts have not been asked for.
    schema, language
        As for ``decision``.
    """
    if not told:
        return [
            say("standing.rests_usual", language),
            say("standing.overturns_all", language, left),
        ]
    key = "standing.rests" if turning else "standing.rests_together"
    labels = _labels(turning or told, schema, language)
    return [say(key, language, labels=labels), say("standing.overturns", language, left)]


def come_again(growing: Collection[str], schema: Schema, language: str, contact: str) -> list[str]:
    """What is left to somebody whom nothing helps at present: time, and whom to talk to.

    Parameters
    ----------
    growing
        Names of the features that grow by themselves and then tell in the person's favour.
    schema, language
        As for ``decision``.
    contact
        Whom the person can talk to, in the operator's words; empty: nobody is named.
    """
    time = [say("standing.time", language, labels=_labels(growing, schema, language))]
    key = "standing.contact" if contact else "standing.talk"
    return [*(time if growing else []), say(key, language, contact=contact)]


def _labels(
    names: Collection[str],
    schema: Schema,
    language: str,
    conjunction: Conjunction = "and",
    max_listed: int = MAX_LISTED,
) -> str:
    """The titles of features, quoted, as a list in words; of more than ``max_listed`` the last are
    only counted.
    """
    return listed(
        [label(schema[name], language) for name in names], language, conjunction, max_listed
    )
