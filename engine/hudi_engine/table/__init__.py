"""One table on its storage: its state, transactions, services, snapshots, changes and inspection. No Spark."""
