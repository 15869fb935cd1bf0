"""Studies: many cells, anywhere; every table and figure of the paper with one command."""
