"""Repairing what a look at a table finds: each repair reports first what it would do, and takes nothing that a commit names."""

from hudi_engine.table.repair.repairs import DUPLICATE_KEYS, KINDS, Repair, repair

__all__ = ["DUPLICATE_KEYS", "KINDS", "Repair", "repair"]
