"""Writing files: base files, log files, and the context their tasks share."""
