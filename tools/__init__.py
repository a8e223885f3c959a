"""What `dev.py` is made of: set-up of the environments and the tiers of tests. Standard library only."""
