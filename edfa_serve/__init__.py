"""The service: the applicant's page, the operator's view, the JSON API and letters.

Read first ``service.py`` (what can be done in an interview) and ``store.py`` (interviews as logs of
events). ``app.py`` puts pages (``pages.py``, ``view.py``), operator's view (``operator.py``) and
API (``api.py``, ``models.py``) over them; every request passes ``security.py``. ``letters`` writes
what a lender sends to somebody who was refused, ``command.py`` is ``edfa serve``.
"""
