"""A user's own fitted model as a predictor; it is never fitted again.

Read first ``model.py``: ``wrap`` and ``UserModel``. ``ask.py`` asks a library's model about rows,
``frames.py`` makes the frames that it wants, ``prepared.py`` speeds up Pipelines. While facts are
missing a distilled model (``distil.py``) or completions answer. ``files.py`` writes and reads
models without pickle; what a stranger's file may contain is checked in ``check_nodes.py``,
``onnx.py``, ``skops_file.py`` and, in a process of its own, ``trial.py``.
"""
