"""Models that read what changed, and earlier states of tables."""
