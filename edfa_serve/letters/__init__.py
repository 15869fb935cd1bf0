"""Letters to people who were refused: what is in them, the operator's declarations, templates."""
