"""Studies: many measurements, on one machine or a cluster; and the paper's tables and figures.

Read first ``config.py`` (a study file becomes cells, ``cells.py``) and ``engine.py`` (cells become
tasks, whose results go into ``store.py``). ``products.py`` makes and stores what cells share,
``measures`` holds what is measured, ``tables`` and ``figures`` what is shown of it, ``sections.py``
and ``report.py`` the report. ``command.py`` is ``edfa study``.
"""
