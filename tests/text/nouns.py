"""Every noun that shows itself as HTML, of one table, with small models: for tests of what
notebooks show.
"""

from dataclasses import replace
from datetime import date

import edfa
from edfa.blanket.robustness import compare, stability
from edfa.certification import (
    GroupCertificates,
    RecourseCertifier,
    certify_expected_risk,
    certify_jointly,
    zones,
)
from edfa.data.clean import CleaningReport
from edfa.recourse.metrics import evaluate_plans
from edfa_serve.letters.letter import write_letter
from edfa_serve.letters.settings import Creditor, Operator, Taken, UnitedStates

KEY = b"a key of thirty-two bytes or so.."


def every_noun(table, blanket, start, answers):
    """The nouns by name. ``start`` are facts of a person, ``answers`` what they tell afterwards."""
    name = table.schema.names[0]
    model = edfa.SubsetXGB(n_estimators=10).fit(table.train.X, table.train.y)
    policy = edfa.EDFA(blanket)
    asked = edfa.acquire(table.calibration, policy, model, budget="inf")
    plans = edfa.find_recourse(asked, edfa.Nearest(table.train))
    certificate = replace(edfa.certify(plans, alpha=0.5), group=name, warnings=(name,))
    advisor = edfa.Advisor(blanket=blanket, predictor=edfa.SubsetXGB(n_estimators=10)).fit(table)
    interview = advisor.interview(start).answer(answers)
    operator = Operator(
        creditor=Creditor(name, "12 Market Street"),
        decision=Taken("refused", date(2026, 11, 16), "officer", "Ms Rivera", reasons=(name,)),
        us=UnitedStates("Consumer Financial Protection Bureau", "1700 G Street NW"),
    )
    return {
        "schema": table.schema,
        "table": table,
        "cleaning": CleaningReport({name: "constant"}, ()),
        "blanket": edfa.discover(table.train),
        "units": blanket,
        "stability": stability(table.train, B=2),
        "comparison": compare(table.train),
        "trajectory": asked,
        "one_trajectory": edfa.acquire(
            table.test.frame.iloc[:1], policy, model, budget="inf", reference=table.train
        ),
        "plans": plans,
        "plan": next(iter(plans)),
        "quality": evaluate_plans(plans, table.train),
        "certificate": certificate,
        "no_certificate": replace(certificate, status="risk_limited", tau=None),
        "groups": GroupCertificates({name: certificate}),
        "joint": certify_jointly({name: plans}, RecourseCertifier(0.5)),
        "expected_risk": certify_expected_risk(plans, alpha=0.5),
        "stops": certificate.stop(plans),
        "zones": zones({"name": [name], "n": [200], "risk": [0.1]}, alpha=0.2),
        "unfitted": edfa.Advisor(),
        "advisor": advisor,
        "interview": interview,
        "receipt": interview.receipt(key=KEY),
        "letter": write_letter(interview, operator, "us"),
    } | _of_an_own_model(table)


def _of_an_own_model(table):
    """What an advisor says about a model of the user's own; the model looks at the first number of
    the card.
    """
    (number, *_) = (
        feature.name for feature in table.schema.features if feature.kind == "continuous"
    )
    middle = float(table.train.frame[number].median())

    def score(frame):
        return 1 / (1 + 2.0 ** (frame[number] - middle).clip(-5, 5))

    advisor = edfa.Advisor(predictor=edfa.wrap(score, columns=[number]), searcher="nearest").fit(
        table
    )
    return {"usage": advisor.usage_, "fidelity": advisor.fidelity_}
