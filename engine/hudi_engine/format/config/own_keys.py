"""Keys of this engine in commits, options and properties of tables."""

from __future__ import annotations

CHECKPOINT = "dbt_hudi.checkpoint"
"""Key of the extra metadata that states, as JSON, up to which instant of each input a table was made; every later commit
carries it on."""

CHECKPOINT_BEFORE = "dbt_hudi.checkpoint.before"
"""Option of a write that notes a checkpoint: the one that its rows were taken after; without it the one that the table has
when the write begins; a write that replaces all rows follows none then."""

BATCHES = "_hudi_streaming_sink_checkpoint"
"""Key of the extra metadata with the last batch of each stream that writes to a table, as JSON, under Apache Hudi's name for its
streaming sink; every later commit carries it on."""

ORIGIN = ("_dbt_invocation_id", "_dbt_node")
"""Keys of the extra metadata with the dbt run and the node that a commit comes from. They alone are no reason for a commit of a
statement that changes no row."""

REPLACED_TABLE = "_hudi_engine_replaced"
"""Key of the extra metadata of a first commit: the newest instant of the table that was in the place of this one, whose history it
does not have; ``""`` for a folder of another format."""

CLONE_OF = "dbt_hudi.clone.until"
"""Property of a clone: its newest instant when it was made. The commits up to it are those of its original."""

CLONE_REPLACED = "dbt_hudi.clone.replaced"
"""Property of a clone that took the place of another table: the newest instant of that one. Up to it an instant that the clone
does not know may have been noted by a reader of what was there before."""
