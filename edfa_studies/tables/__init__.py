"""Tables of a study: functions from its results to a frame, and how a frame is shown as HTML, LaTeX
and CSV.
"""
