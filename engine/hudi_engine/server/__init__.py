"""Hudi tables for clients of HiveServer2: BI tools, beeline, dbt-spark."""
