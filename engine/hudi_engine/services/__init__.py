"""Table services: compaction and clean, asked for by name or run after a commit."""
