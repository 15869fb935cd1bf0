"""Figures of a study: for each a function from results to a tidy frame, and one that draws the
frame on an axis.

``growth.py`` (what is known after how much cost), ``promises.py`` (certificates) and
``examples.py`` have the figures; ``style.py`` their colours and sizes, ``render.py`` writes SVG and
PNG.
"""
