"""Whatever needs a SparkSession: tables as DataFrames, writes from DataFrames, names in a catalog."""
