"""``dbt-hudi serve``: the warehouse for clients of HiveServer2, and a warm process for commands."""
