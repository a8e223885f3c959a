"""The incoming rows: fitted to the table's schema, with their keys."""
