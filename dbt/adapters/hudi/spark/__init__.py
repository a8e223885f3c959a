"""The Spark session behind the connections, and the names it knows."""
