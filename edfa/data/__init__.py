"""What is known about a person, and what it costs to ask."""
