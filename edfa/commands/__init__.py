"""The commands of the command line, one file for each group.

``edfa.cli`` registers them; read ``fit.py`` first, which shows how a command is built: options are
annotated arguments, the library is imported inside, and an ``Output`` of ``common.py`` prints text
or JSON. ``dialogue.py`` holds an interview in the terminal, ``tables.py`` prints tables. Commands
that other packages bring (``serve``, ``letter``, ``study``) are found by entry point.
"""
