"""Making tables and rebuilding them."""
