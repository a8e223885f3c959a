"""Work of table services on the executors of a session."""
