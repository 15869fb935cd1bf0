"""One search algorithm a file, under its paper's name."""
