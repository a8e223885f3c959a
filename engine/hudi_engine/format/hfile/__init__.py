"""HFile: sorted keys with values and an index, the file format of Hudi's metadata table and of HFile log blocks."""
