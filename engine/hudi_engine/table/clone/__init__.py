"""A second table over the base files of a first one, which from then on goes its own way."""

from hudi_engine.table.clone.make import CloneResult, clone_table

__all__ = ["CloneResult", "clone_table"]
