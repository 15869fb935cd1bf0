"""Tables of a study: functions from its results to a frame, and how a frame is shown as HTML, LaTeX
and CSV.

``rows.py`` (results as one frame) is read first; ``acquired.py``, ``growth.py``, ``promises.py``
and ``examples.py`` have the tables, ``checks.py`` what must hold, ``names.py`` how things are
called and ``render.py`` the three forms.
"""
