"""Settings: options of calls, properties of tables."""
