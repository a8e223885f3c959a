"""Read and write Apache Hudi tables with PySpark and Arrow, without the Hudi JVM bundle."""
