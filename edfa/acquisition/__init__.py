"""Which fact to ask next."""
