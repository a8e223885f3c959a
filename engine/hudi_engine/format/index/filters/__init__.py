"""Keys in the footer of a base file: Bloom filters and key ranges."""
