"""How an advisor works inside: what it makes of people on the way, one at a time or a file of them."""
