"""Transactions: locks, conflicts, commits, rollback and restore."""
