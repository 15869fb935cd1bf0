"""A fitted user model: how it is asked, read from a file, and completed by a view of its own."""
