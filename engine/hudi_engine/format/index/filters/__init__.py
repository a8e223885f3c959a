"""What a base file's footer says about its keys: Bloom filters and key ranges."""
