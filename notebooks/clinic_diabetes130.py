# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # A clinic: which tests to order
#
# Diabetes130 has 101,766 stays of patients with diabetes in 130 US hospitals. Will this patient be
# back? Some facts are on file, some cost a look at the records, two are laboratory tests. Which of
# them are worth their price, what could the hospital change, and may anybody rely on that?
#
# The data set does not travel with edfa: put `diabetes130.parquet` into a folder and name it in
# `EDFA_DATA`, or be online, and it comes from OpenML; otherwise the next cell says so. It is capped
# at 3,000 stays, so that this takes about 10 seconds. **This is an exercise with old records. It is
# no medical advice.**

# %%
from textwrap import fill

import edfa
from edfa.text import narrate

table = edfa.load("diabetes130", cap=3000)


def say(*texts):
    print(*(fill(text, 100) for text in texts), sep="\n")


# %% [markdown]
# ## Prices
#
# The card has a price for every fact. What is on file is free. The prices are relative: put in
# yours, in money or minutes.

# %%
for cost, facts in table.schema.frame().groupby("cost"):
    print(f"{cost:g}: {len(facts)} facts, such as {', '.join(facts.label[:3])}")

# %% [markdown]
# ## Which facts matter
#
# An advisor looks for the facts that say something about readmission beyond all others.
# `threshold="balanced"` expects a readmission of whoever is likelier to come back than the average
# patient.

# %%
advisor = edfa.Advisor(predictor=edfa.SubsetXGB("nan", n_estimators=40), threshold="balanced").fit(
    table
)
advisor.fitted.blanket

# %%
everything = table.schema.costs.sum()
needed = sum(table.schema[name].cost for name in advisor.fitted.blanket.features)
print(f"all facts cost {everything:g}, those that matter {needed:g}")
for name in ("A1Cresult", "max_glu_serum"):
    known = (table.frame[name] != "None").mean()
    verdict = "worth its price" if name in advisor.fitted.blanket else "not ordered"
    print(f"{name}: {verdict}; measured in {known:.0%} of stays")
test = advisor.evaluation_
say(str(test))
say(f"right about {test.accuracy_end:.1%}, knowing everything about {test.accuracy_all:.1%}")

# %% [markdown]
# Neither test is ordered *for this question*: with 3,000 stays neither adds anything that can be
# told from chance once earlier stays, diagnoses and the care after discharge are known, and a model
# that is shown everything is not right more often. Two things to keep in mind. Both tests were done
# for few patients, so the records can say little about them. And they have other uses; nothing here
# says that a patient does not need them.
#
# More records see more: with `cap=20_000` (half a minute) nine facts matter, the glucose test among
# them; the A1c test still does not.

# %% [markdown]
# ## One patient
#
# A woman between 70 and 80, four days in hospital, no stay in the year before. She is to go to a
# nursing facility.

# %%
on_file = {
    "age": "[70-80)",
    "time_in_hospital": 4,
    "number_inpatient": 0,
    "number_emergency": 0,
    "number_outpatient": 0,
}
answers = {"discharge_disposition_id": "3", "number_diagnoses": 8}
interview = advisor.interview(on_file)
while (asked := interview.question) is not None:
    say(f"- {narrate.ask(asked.feature, advisor.schema)} (costs {asked.cost:g})")
    interview.answer({asked.feature: answers[asked.feature]})
say(narrate.decision(interview.decision, advisor.schema))

# %% [markdown]
# ## What can be changed
#
# The card is the hospital's view. Nobody is sent home earlier or taken off a drug for a prediction,
# no drug is begun, and what is past stays as it is. What is left is more care after discharge:

# %%
for plan in interview.plans():
    say(narrate.plan(plan, advisor.schema, blanket=advisor.fitted.blanket))
say(narrate.standing(interview.standing))

# %% [markdown]
# Read the figures: the estimate moves by one point, just across the line, and of the patients in
# the records who are much like this one then only half stayed away. Patients in rehabilitation also
# differ from those in a nursing facility in more than the place. So this is a question to a doctor,
# and nothing to act on by itself. Most patients with a readmission expected have no such way at
# all. With three stays in the year before:

# %%
often_here = advisor.interview(on_file | {"number_inpatient": 3}).answer(answers)
say(
    narrate.decision(often_here.decision, advisor.schema),
    narrate.no_plan(often_here.no_plan, advisor.schema),
)

# %% [markdown]
# ## May anybody rely on it?

# %%
for ending, made in advisor.endings.items():
    say(f"{ending}: {made.sentence}")

# %% [markdown]
# No. An advisor may end early in three ways: no readmission is expected, there is a plan that
# helps, or nothing would help; each needs a certificate. The first and the last lack a hundred
# patients or so. The second counts patients with a plan, and among 600 calibration patients hardly
# any has one at all. At least this many would have to be told to act, if none of them did so in
# vain:

# %%
from edfa.certification import n_required

least = n_required(alpha=0.2, r0=0.0, delta=0.05 / 3, bound="cp").floor  # a third for each
print(f"{least} patients who are told to act, before everything is asked")

# %% [markdown]
# An advisor that cannot keep a promise makes none: until then nobody is told anything early, in
# interviews, in files and on the page. With `cap=20_000` two of the three are certified: 57 % of
# the 3,999 test patients are told early that no readmission is expected (4.8 % of them wrongly),
# 33 % that nothing which the card allows would help (7.9 % wrongly), and 98 % of the cost of all
# facts is saved. Nobody is told to act there either: plans that help are too few.
#
# Next: [cards and prices](../docs/data.md), [which facts matter](../docs/blanket.md),
# [certificates](../docs/certification.md).
