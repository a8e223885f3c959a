"""What the commits of a table did to its rows, between any two states of it."""
