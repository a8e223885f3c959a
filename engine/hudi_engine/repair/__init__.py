"""Repairing what a look at a table finds: each repair says first what it would do, and takes nothing that a commit names."""

from hudi_engine.repair.repairs import KINDS, Repair, repair

__all__ = ["KINDS", "Repair", "repair"]
