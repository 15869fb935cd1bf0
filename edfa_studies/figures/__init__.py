"""Figures of a study: for each a function from results to a tidy frame, and one that draws the
frame on an axis.
"""
