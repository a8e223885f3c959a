"""Clustering: file groups rewritten into files of a good size, rows in a good order."""
