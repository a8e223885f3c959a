"""What `HudiTable` offers, a class for each kind of call."""
