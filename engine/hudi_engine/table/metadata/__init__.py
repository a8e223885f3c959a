"""Keeping Hudi's metadata table with the table."""
