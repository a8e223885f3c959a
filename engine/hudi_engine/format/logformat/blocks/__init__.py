"""One module for each type of log block."""
