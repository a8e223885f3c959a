"""Damaged and hostile metadata, thrown at every parser of the engine: no crash, no hang, bounded memory."""
