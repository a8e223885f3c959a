"""The parts of a write that need no Spark: what a table is made with, and which file each row goes to."""
