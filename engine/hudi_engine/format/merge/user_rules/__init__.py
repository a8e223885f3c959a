"""Merge rules of the user's own: loaded only from modules on the trust list."""
