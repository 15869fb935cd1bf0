"""A fitted user model: asked, read, kept."""
