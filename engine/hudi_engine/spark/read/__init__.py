"""Reading tables through Spark."""
