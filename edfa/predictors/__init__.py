"""Models that answer from any subset."""
