"""How a write's work is spread: over threads of the driver, or over executor tasks."""
