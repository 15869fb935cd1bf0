"""A fitted model of the user's own: asked, read, kept."""
