"""Benchmarks: the same workload on dbt-hudi and its peers, reported as ratios of one run."""
