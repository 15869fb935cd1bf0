"""What can be changed, what would not help yet, and what never matters."""
