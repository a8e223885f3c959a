"""One write, from a DataFrame to a commit."""
