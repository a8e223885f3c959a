"""Clean: files of old slices go."""
