"""Everything said to people, in every language, and the HTML around it.

Read first ``record.py``: an ``InterviewRecord`` is what page, API, notebook, terminal and letter
show of an interview. Its sentences are made by ``narrate.py`` (decision, standing, reasons) and
``steps.py`` (the changes of a plan), from the tables in ``sentences``; ``phrases.py`` writes
numbers, values and lists as a language does. ``answers_in_words.py`` reads what people type,
``summaries.py`` writes nouns for notebooks, ``html.py`` pages.
"""
