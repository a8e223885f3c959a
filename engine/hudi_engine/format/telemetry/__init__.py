"""What a write says of itself: seconds by phase, spans, metrics under Hudi's names, the callback after a commit."""
