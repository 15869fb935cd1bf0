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
# # A lender with a model of their own
#
# You have a model. It is approved, it decides, and it stays as it is. What you lack: which question
# to ask an applicant next, what to tell somebody who is refused, and when that advice is safe to
# act on.
#
# This notebook gets there from three files: a table of old applications, a card that describes it,
# and the model. It takes about 15 seconds on one processor, needs no network, and writes into the
# current folder. `pip install 'edfa[own]'`

# %%
from textwrap import fill

import edfa
from edfa.text import narrate


def say(*texts):
    print(*(fill(text, 100) for text in texts), sep="\n")


# %% [markdown]
# ## The table and its card
#
# German credit plays your file. The card says what the file cannot: what a fact costs to ask,
# whether a person can change it, which way, and how long that takes. `edfa schema people.csv`
# drafts one; this one has been gone through.

# %%
edfa.load("german").frame.to_csv("people.csv", index=False)
edfa.load("german").schema.write("card.toml")

table = edfa.Table.from_csv("people.csv", "card.toml")
card = table.schema.frame()
card.loc[
    ["checking_status", "duration", "credit_amount", "employment", "age"],
    ["cost", "change", "takes", "label"],
]

# %% [markdown]
# ## Your model
#
# Any fitted scikit-learn Pipeline that takes a frame. It must not have seen the people of
# `table.calibration` and `table.test`: these are for the certificate and for the final measurement.
# This one leaves out age, sex and nationality, which a letter could not name as reasons anyway.

# %%
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

words, numbers = (
    ["checking_status", "savings_status", "employment", "purpose"],
    ["duration", "credit_amount"],
)
prepare = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), words), (StandardScaler(), numbers)
)
people, outcome = table.train.frame[words + numbers], table.train.frame["class"]
model = make_pipeline(prepare, LogisticRegression(class_weight="balanced")).fit(people, outcome)

# %% [markdown]
# `edfa.wrap` makes advice about *this* model. It is never fitted again. First a check that it can
# be wrapped at all: the same answer when asked twice, for one person as for many, and so on. A
# model that fails is refused with the reason.

# %%
from edfa.testing import check_wrapped

check_wrapped(model, table)
wrapped = edfa.wrap(model)

# %% [markdown]
# ## Rules of the house
#
# They come on top of the card's. Here: no advice that takes longer than a year, and nobody is asked
# for sex and marital status or for their telephone.
#
# By default an interview ends in one of three ways, each with a promise: a person is granted, has a
# plan that helps, or is told that nothing does. The 200 people that are left to certify on are too
# few for a promise about plans that help. `loss="let_down"` promises less, and only to those who
# act: that few of them do the plan and are still refused.

# %%
rules = edfa.Rules(max_months=12, never_ask=("personal_status", "own_telephone"))
advisor = edfa.Advisor(predictor=wrapped, rules=rules, loss="let_down").fit(table)
print(advisor.usage_)
print(advisor.fidelity_)
print(advisor.evaluation_)

# %% [markdown]
# The first lines say which facts your model uses, and which of them say something about repayment
# in your table. The next says how often a guess made from half of the facts meets your model's own
# decision. The last is about 200 people who took no part in anything before.
#
# ## The certificate
#
# This is the sentence to show a regulator. Read it as a whole: it is about people who are told to
# act, not about one person, and it says before whom the advice holds.

# %%
say(advisor.certificate.sentence)

# %%
advisor.certificate

# %% [markdown]
# ## An interview
#
# Somebody of 31 wants 2,746 DM for furniture. Age, purpose and amount are on the form; the rest is
# asked, one question at a time, until the advisor may say "you may act".

# %%
answers = {
    "duration": 36,
    "checking_status": "<0",
    "employment": "1<=X<4",
    "savings_status": "<100",
}
interview = advisor.interview({"purpose": "furniture/equipment", "credit_amount": 2746, "age": 31})
while interview.question is not None and not interview.standing.may_act:
    asked = interview.question.feature
    say(f"- {narrate.ask(asked, advisor.schema)} {answers[asked]}")
    interview.answer({asked: answers[asked]})

say(narrate.decision(interview.decision, advisor.schema), narrate.standing(interview.standing))

# %% [markdown]
# What the person is told they can do. Every plan keeps to the card and to your rules, and its last
# figure says in how many of 100 cases your model would still be satisfied when the rest is known.

# %%
used = advisor.fitted.policy.blanket  # what your model uses: nothing else can overturn a plan
for plan in interview.plans(k=3):
    say("- " + narrate.plan(plan, advisor.schema, blanket=used))
say(interview.guarantee)

# %% [markdown]
# The same as a sheet, with what each answer changed:

# %%
interview

# %% [markdown]
# A person may have limits of their own. They only tighten yours. This one wants to act today and to
# borrow the whole amount: a much shorter loan alone is left. Your model would refuse it in nearly
# half of the cases, so that nobody is told to act on it.

# %%
today = edfa.Overlay(locked=("credit_amount",), max_months=0)
may_act = interview.copy(overlay=today).standing.may_act
for plan in interview.plans(overlay=today):
    print(f"{plan}; works in {plan.survival:.0%} of cases; may act: {may_act}")

# %% [markdown]
# Where a limit leaves nothing, it is named:

# %%
stuck = edfa.Overlay(locked=("checking_status", "duration"))
say(narrate.no_plan(interview.why_no_plan(stuck), advisor.schema, operator=rules))

# %% [markdown]
# ## A letter
#
# Your model decides by the whole application, so the rest is asked before anybody is refused. What
# edfa cannot know, you declare: who you are, who decided and when. The letter is a draft for
# somebody who knows the law that applies to you.

# %%
while (asked := interview.question) is not None:
    interview.answer({asked.feature: answers[asked.feature]})
say(narrate.decision(interview.decision, advisor.schema))

# %%
from pathlib import Path

from edfa_serve.letters.letter import write_letter
from edfa_serve.letters.settings import read_operator

Path("letter.toml").write_text(
    """
[creditor]
name = "Example Savings Bank"
address = "12 Market Street, Springfield, IL 62701"

[decision]
action = "refused"
date = 2026-11-16
decided_by = "system"

[us]
agency = "Consumer Financial Protection Bureau"
agency_address = "1700 G Street NW, Washington, DC 20552"
"""
)
letter = write_letter(interview, read_operator("letter.toml", "en"), "us")
letter.write("letter.html")
print(*letter.reasons, sep="\n")

# %%
letter

# %% [markdown]
# ## Keep it
#
# The folder holds your model in a format that runs no code when it is read, each file with its
# hash. What was loaded is the same advisor, so the receipt that a person was given can be checked
# with it.

# %%
advisor.save("advisor")
again = edfa.Advisor.load("advisor")
receipt = interview.receipt(key=b"a secret of the lender's")
print(again.fingerprint == advisor.fingerprint)
print(again.verify(receipt.to_json(), key=b"a secret of the lender's"))

# %% [markdown]
# Next: [a model of your own](../docs/own-model.md), [rules](../docs/recourse.md),
# [certificates](../docs/certification.md), [the letter](../docs/letter.md); or put it in front of
# people: `edfa serve advisor` ([the page](../docs/page.md)).
