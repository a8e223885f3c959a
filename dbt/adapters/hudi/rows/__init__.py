"""From a model's query to the rows of a commit."""
