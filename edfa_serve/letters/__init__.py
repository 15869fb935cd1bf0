"""Letters to people who were refused.

Read first ``letter.py`` (what a letter says, from the record of an interview) and ``settings.py``
(what the operator declares in ``letter.toml``). ``words.py`` has the law's own phrases, ``page.py``
turns a letter into HTML and PDF, ``command.py`` is ``edfa letter``.
"""
