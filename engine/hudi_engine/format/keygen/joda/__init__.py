"""Date patterns and time zones as Joda-Time has them, for the timestamp-based key generator."""
