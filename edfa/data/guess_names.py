"""What a column's name suggests, for the draft of a card: whether it is sensitive, and whether
anybody can change it.

The guesses err on one side: a feature that is frozen or sensitive without need loses plans, which
a reader of the card gives back; one that is free without reason tells people to change what they
cannot.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from edfa.data.schema import Change


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that are sensitive wherever they stand in a name; what is said about them follows each list.
SENSITIVE = {
    "about the person": _set(
        "sex gender race racial ethnicity ethnic religion religious faith marital "
        "marriage married relationship spouse"
        " orientation sexual caste skin veteran pregnancy pregnant maternity disability "
        "disabled handicap handicapped"
        " impairment political union"
    ),
    "origin": _set(
        "nationality citizenship citizen country foreign foreigner native immigrant "
        "immigration migrant migration"
        " birthplace birth born dob origin language tongue"
    ),
    "where people live": _set(
        "postcode postcodes postal zip zipcode plz address street city town village "
        "county district neighbourhood"
        " neighborhood region residence"
    ),
    "a name": _set("firstname lastname surname forename fullname"),
}
SENSITIVE_VALUES = _set(
    "male female man woman men women married unmarried single divorced widowed separated "
    "husband wife christian muslim"
    " jewish hindu buddhist catholic protestant citizen foreigner"
)
PERSONS_NAME = _set(
    "first last middle full given family maiden customer client person applicant borrower "
    "patient member"
)
NOT_A_PERSON = _set(
    "account car vehicle house home building property loan credit trade file oldest "
    "newest card machine policy debt"
    " line lines company firm business"
)

GROWS = _set("age tenure seniority experience employed employment service")
ONLY_UP = _set("education degree schooling qualification qualifications diploma grade school")
FROZEN = {
    "what is past": _set(
        "history historical delinquency delinquencies delinquent delq derog late default "
        "defaults defaulted previous"
        " previously prior past overdue arrears ever times bankruptcy bankruptcies "
        "bankrupt inquiries inquiry"
        " enquiries inq convicted conviction convictions arrest arrests oldest last "
        "lifetime missed rejected refused"
        " inpatient outpatient emergency admission admissions admitted diagnosis diagnoses"
    ),
    "family": _set("dependents dependants children child siblings parents household"),
    "a measurement of a body": _set(
        "radius texture perimeter area smoothness compactness concavity concave symmetry "
        "fractal dimension tumor tumour"
        " lesion cell cells nucleus nuclei mitoses biopsy blood pressure systolic "
        "diastolic bp glucose cholesterol hdl"
        " ldl triglycerides insulin hba1c hba hemoglobin haemoglobin bmi height weight "
        "thickness heart pulse ecg"
        " oxygen temperature fever creatinine albumin bilirubin platelets leukocytes "
        "leukocyte wbc rbc gene genes"
        " genotype biomarker serum lab sepal petal symptom symptoms"
    ),
    "set by others": _set("score scores rating ratings limit interest estimate"),
}
CODES = _set(
    "id ids code codes postcode postcodes postal zip zipcode plz phone telephone mobile iban ssn"
)
DAYS, WEEKS, MONTHS, YEARS = (
    _set("day days"),
    _set("week weeks"),
    _set("month months"),
    _set("year years yrs"),
)
TIMES = DAYS | WEEKS | MONTHS | YEARS


@dataclass(frozen=True)
class NameGuess:
    """What a name suggests.

    Parameters
    ----------
    sensitive, change, per_year, unit
        As in ``Feature``.
    why
        The reasons, in words for the card's remark; empty if the name suggests nothing.
    """

    sensitive: bool = False
    change: Change = "free"
    per_year: float = 0.0
    unit: str = ""
    why: str = ""


def words_of(name: str) -> tuple[str, ...]:
    """The words of a column's name in small letters.

    >>> words_of("NumberOfTimes90DaysLate"), words_of("mean_radius"), words_of("MSinceLastPay")
    (('number', 'of', 'times', 'days', 'late'), ('mean', 'radius'), ('m', 'since', 'last', 'pay'))
    """
    parted = re.sub(
        r"([A-Z]+)([A-Z][a-z])", r"\1 \2", re.sub(r"([^\W\d_A-Z])([A-Z])", r"\1 \2", name)
    )
    return tuple(word for word in re.split(r"[\W\d_]+", parted.lower()) if word)


def is_code(name: str) -> bool:
    """Whether numbers in a column of this name would be codes rather than measurements, such as
    postcodes.
    """
    return not CODES.isdisjoint(words_of(name))


def is_date_name(name: str) -> bool:
    """Whether a column of this name holds dates."""
    return not _set("date dates datetime timestamp dob").isdisjoint(words_of(name))


def guess_from_name(
    name: str,
    *,
    numeric: bool,
    ordered: bool,
    span: tuple[float, float] = (0.0, 0.0),
    levels: Iterable[str] = (),
) -> NameGuess:
    """Guess what the name of a feature says about it.

    Parameters
    ----------
    name
        The column.
    numeric, ordered
        Whether its values are measurements, and whether they have an order at all.
    span
        The lowest and the highest value of a numeric column: an age of 0 to 120 is taken for years.
    levels
        The different values of a column of words: "male single" is sensitive whatever the column is
        called.

    Returns
    -------
    NameGuess
        Whether it is sensitive, how it can change, and how it grows by itself.

    Examples
    --------
    >>> guess_from_name("tenure_months", numeric=True, ordered=True, span=(0, 300))
    NameGuess(sensitive=False, change='frozen', per_year=12.0, unit='months', why="change 'frozen' (it grows by itself)")
    """  # noqa: E501
    words = words_of(name)
    said = frozenset(words)
    grows = ordered and _grows(said)
    sensitive = _sensitive(words)
    if grows and sensitive == "where people live":  # how long they do
        sensitive = ""
    if not sensitive and any(not SENSITIVE_VALUES.isdisjoint(words_of(level)) for level in levels):
        sensitive = "by its values"
    if "age" in said and said.isdisjoint(NOT_A_PERSON) and not sensitive:
        sensitive = "about the person"
    per_year, unit = _growth(said, *span) if grows and numeric else (0.0, "")
    reason = (
        "it grows by itself"
        if grows
        else next((why for why, listed in FROZEN.items() if said & listed), "")
    )
    if said & ONLY_UP and not sensitive and not reason:
        if ordered:
            return NameGuess(change="up", why="change 'up' (education is not lost)")
        reason = "education; put its levels in order and say up"
    if not (sensitive or reason):
        return NameGuess()
    why = [f"sensitive ({sensitive})"] if sensitive else []
    why += [f"change 'frozen' ({reason})" if reason else "change 'frozen'"]
    return NameGuess(bool(sensitive), "frozen", per_year, unit, ", ".join(why))


def _grows(said: frozenset[str]) -> bool:
    """Whether a name is that of a time that passes: an age, a tenure, years at an address, months
    since something.
    """
    return bool(said & GROWS or "since" in said or (said & TIMES and said & {"at", "in"}))


def _sensitive(words: tuple[str, ...]) -> str:
    """Why a name is sensitive; empty if it is not. A product's name is not a person's."""
    said = frozenset(words)
    for reason, listed in SENSITIVE.items():
        if said & listed:
            return reason
    named = "name" in said or "names" in said
    return "a name" if named and (said & PERSONS_NAME or len(words) == 1) else ""


def _growth(said: frozenset[str], low: float, high: float) -> tuple[float, str]:
    """By how much a time of this name grows in a year, and its unit; 0 and none if that is not
    clear.
    """
    if low < 0:  # counted backwards, or with codes among the numbers
        return 0.0, ""
    for words, per_year, unit in (
        (DAYS, 365.0, "days"),
        (WEEKS, 52.0, "weeks"),
        (MONTHS, 12.0, "months"),
    ):
        if said & words:
            return per_year, unit
    return (1.0, "years") if high <= 120 and (said & YEARS or said == {"age"}) else (0.0, "")
