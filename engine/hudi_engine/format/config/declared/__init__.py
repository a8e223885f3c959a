"""The options, each declared once, by what they are about."""
