"""What the API takes and gives, as models from which its OpenAPI description is made."""

import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from edfa.advice.assessment import QuestionReason
from edfa.advice.standing import Status
from edfa.certification.endings import EndingName
from edfa.recourse.plans import Reason

MOST_FACTS = 300
MOST_PEOPLE = 100
MOST_EVENTS = 200
Name = Annotated[str, Field(min_length=1, max_length=100)]
Text = Annotated[StrictStr, Field(max_length=200)]
Whole = Annotated[StrictInt, Field(ge=-(10**15), le=10**15)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Value = Text | StrictBool | Whole | Number | None
Facts = Annotated[
    dict[Name, Value],
    Field(
        max_length=MOST_FACTS,
        description="Values by feature, in the words of GET /schema; null: there is none.",
        examples=[{"age": 35, "purpose": "radio/tv", "credit_amount": 2400}],
    ),
]
Seq = Annotated[
    StrictInt | None,
    Field(
        ge=0,
        le=10**9,
        description="The number of events that you have seen: 409 if there are more. null: any.",
    ),
]


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Begin(_Given):
    """What is known from the start."""

    facts: Facts = {}
    language: Annotated[str, Field(max_length=10, description="As in GET /schema.")] = "en"


class Step(_Given):
    """Nothing but the number of events that were seen."""

    seq: Seq = None


class Answers(Step):
    """One or more facts, asked for or not."""

    facts: Annotated[Facts, Field(min_length=1, examples=[{"duration": 24}])]


class Decline(Step):
    """A question that the person would rather not answer."""

    feature: Name


class Undo(Step):
    """Take back the last answer, or the one about a feature."""

    feature: Name | None = None


class Choice(Step):
    """The plan that the person follows."""

    plan: Annotated[str, Field(max_length=100, description="The id of a plan that is offered.")]


class Speak(Step):
    """Another language."""

    language: Annotated[str, Field(max_length=10)]


class Overlay(_Given):
    """The person's own limits on plans; they only tighten the operator's."""

    locked: Annotated[
        list[Name], Field(max_length=MOST_FACTS, description="What must stay as it is.")
    ] = []
    difficulty: Annotated[
        dict[Name, Annotated[StrictInt, Field(ge=1, le=5)]],
        Field(max_length=MOST_FACTS, description="From 1 (easy) over 3 (as usual) to 5 (hard)."),
    ] = {}
    ranges: Annotated[
        dict[Name, tuple[Number, Number]],
        Field(max_length=MOST_FACTS, description="The least and largest number."),
    ] = {}
    levels: Annotated[
        dict[Name, Annotated[list[Text | Whole | Number], Field(max_length=200)]],
        Field(max_length=MOST_FACTS, description="The levels that may be proposed."),
    ] = {}
    max_changes: Annotated[StrictInt, Field(ge=1, le=100)] | None = None
    max_months: Annotated[float, Field(ge=0, le=1200, allow_inf_nan=False)] | None = None
    never_ask: Annotated[
        list[Name], Field(max_length=MOST_FACTS, description="What not to be asked.")
    ] = []


class SetOverlay(Step):
    """All limits of the person; they replace those there were."""

    overlay: Overlay = Overlay()


class Suppose(_Given):
    """Facts that are, or turn out to be, otherwise; nothing is kept."""

    facts: Annotated[Facts, Field(min_length=1)]


class LetDown(Step):
    """The plan was done, and did not lead where it should."""

    plan: Annotated[
        str | None, Field(max_length=100, description="Its id; null: the one that was chosen.")
    ] = None


class LetterWanted(Step):
    """Which letter."""

    template: Literal["us", "eu"] | None = Field(
        default=None, description="null: the operator's usual one."
    )


class DecisionMade(_Given):
    """What the operator decided about the person of an interview; the section ``decision`` of
    letter.toml.
    """

    interview: Annotated[StrictStr, Field(min_length=1, max_length=64, description="Its id.")]
    seq: Annotated[
        StrictInt | None, Field(ge=1, description="The number of events that were seen.")
    ] = None
    action: Literal["refused", "incomplete"]
    date: datetime.date = Field(description="The day of the decision.")
    decided_by: Literal["system", "system_and_officer", "officer", "rule", "other_model"] | None = (
        None
    )
    officer: Annotated[StrictStr, Field(max_length=200)] = ""
    reasons: Annotated[
        list[Annotated[StrictStr, Field(min_length=1, max_length=300)]], Field(max_length=4)
    ] = []
    credit: Annotated[StrictStr, Field(max_length=300, description="What was applied for.")] = ""
    counter_offer: Annotated[StrictStr, Field(max_length=500)] = ""
    until: datetime.date | None = Field(
        default=None, description="Until when lacking facts are awaited."
    )


class Verify(_Given):
    """A receipt, as it was handed out."""

    receipt: Annotated[dict[str, Any], Field(max_length=100)]


class People(_Given):
    """People, each with what is known of them."""

    people: Annotated[list[Facts], Field(min_length=1, max_length=MOST_PEOPLE)]
    k: Annotated[StrictInt, Field(ge=1, le=5, description="At most so many plans each.")] = 3


class DecisionState(BaseModel):
    """What is decided from what is known."""

    outcome: str
    label: str = Field(description="The outcome in the person's language.")
    favourable: bool
    probability: float = Field(description="Of the favourable outcome.", ge=0, le=1)
    threshold: float | None = Field(
        description="The probability that is needed; null: the likeliest outcome wins."
    )
    cases: int | None = Field(
        default=None,
        description=(
            "The number of completions that the probability is a share of; null: an estimate."
        ),
    )
    sentence: str


class Choosable(BaseModel):
    """One answer to choose."""

    value: str | float
    label: str


class AskedState(BaseModel):
    """How a fact is asked for."""

    label: str
    unit: str
    ask: str = Field(description="The question as it is put to a person.")
    hint: str
    cost: float
    choices: list[Choosable]
    low: float | None
    high: float | None


class QuestionState(AskedState):
    """What is asked next."""

    feature: str
    spent: float
    left: int = Field(description="At most so many more questions, this one included.")
    why: QuestionReason
    sentence: str


class StandingState(BaseModel):
    """Whether the interview may end now, and how."""

    status: Status
    ending: EndingName | None = Field(
        description="The ending that is possible now; null: nothing is promised about it."
    )
    promised: bool = Field(description="Whether a certificate speaks of being told the status.")
    ends: bool = Field(description="Whether nothing more needs to be asked.")
    may_act: bool
    deviations: list[str]
    sentence: str
    guarantee: str | None = Field(description="The certificate in words, if it is promised.")


class ChangeState(BaseModel):
    """One changed fact; any value from ``low`` to ``high`` does as well, an end that is null is
    open. Where ``after`` goes farther so that it should hold later, ``enough_now`` is what turns
    today's decision.
    """

    feature: str
    label: str
    before: Value
    after: Value
    low: Value
    high: Value
    enough_now: Value


class PlanState(BaseModel):
    """What to change so that the decision is another one."""

    id: str
    changes: list[ChangeState]
    reached: str
    probability_before: float
    probability_after: float
    effort: float
    months: float
    survival: float | None = Field(
        description="The chance that it still holds when everything is known."
    )
    support: int | None = Field(description="How many people are like this one then.")
    support_share: float | None = Field(
        description="The share of them with the favourable outcome."
    )
    unknown: list[str]
    sentence: str


class NoPlanState(BaseModel):
    """Why there is no plan."""

    reason: Reason
    unlock: list[str]
    sentence: str


class Offered(BaseModel):
    """The plans, the best first."""

    seq: int
    chosen: str | None
    plans: list[PlanState]
    no_plan: NoPlanState | None


class InterviewState(Offered):
    """An interview as it stands."""

    id: str = Field(description="For the operator to find it by; it opens nothing.")
    language: str
    asking: bool = Field(
        description="Whether the question is to be put: otherwise the interview is at an end."
    )
    stopped: bool
    went_on: bool
    facts: dict[str, Value]
    declined: list[str]
    flags: list[str] = Field(description="What was not taken as told, in words.")
    decision: DecisionState
    standing: StandingState
    question: QuestionState | None
    overlay: Overlay


class Begun(BaseModel):
    """A new interview; its token is given here and never again."""

    token: str = Field(
        description="Send it as Authorization: Bearer TOKEN. It opens this interview.",
        min_length=22,
    )
    interview: InterviewState


class Supposed(BaseModel):
    """What would be then; nothing is kept of it."""

    seq: int
    decision: DecisionState
    plans: list[PlanState]
    no_plan: NoPlanState | None


class ReceiptBody(BaseModel):
    """A receipt; POST /verify takes it as it is. See ``edfa.advice.receipt.Receipt``."""

    model_config = ConfigDict(extra="allow")
    version: int
    time: str
    advisor: str
    language: str
    facts: dict[str, Value]
    declined: list[str]
    decision: dict[str, Any]
    plans: list[dict[str, Any]]
    chosen: str | None
    standing: dict[str, Any]
    certificate: str
    key: str
    signature: str


class DecisionRecorded(BaseModel):
    """A decision that is recorded; ``seq`` is the number of the interview's events then."""

    interview: str
    seq: int


class LetterState(BaseModel):
    """A letter."""

    seq: int
    html: str


class DifferenceState(BaseModel):
    """A part of a receipt that does not come out again."""

    part: str
    receipt: Any
    today: Any


class Verified(BaseModel):
    """Whether a receipt holds."""

    holds: bool
    signature: Literal["right", "wrong", "missing", "none", "not_checked"]
    advisor: bool = Field(description="Whether it is of this advisor.")
    differences: list[DifferenceState]
    sentence: str


class AdviceRow(BaseModel):
    """Advice for one person; or what is wrong with what was told of them."""

    row: int
    outcome: str | None
    probability: float | None
    refused: bool | None
    question: str | None
    cost: float | None
    status: Status | None
    plans: list[dict[str, Any]]
    reason: Reason | None
    flags: str | None
    error: str | None


class Advised(BaseModel):
    """Advice, a row a person, in their order."""

    advisor: str
    people: list[AdviceRow]


class FeatureState(AskedState):
    """One fact that may be told."""

    name: str
    kind: Literal["continuous", "ordinal", "categorical"]
    start: bool
    asked: bool = Field(description="Whether it may be asked for; what is not makes no difference.")
    sensitive: bool


class SchemaState(BaseModel):
    """What is asked, in a language."""

    title: str
    language: str
    languages: list[str]
    advisor: str = Field(description="Its fingerprint.")
    favourable: str
    outcomes: dict[str, str]
    features: list[FeatureState]
