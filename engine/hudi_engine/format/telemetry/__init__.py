"""Telemetry of a write: seconds by phase, spans, metrics under Hudi's names, the callback after a commit."""
