"""Publishing a table's newest state: the snapshot manifest that Spark reads, and the sidecars it lists."""
