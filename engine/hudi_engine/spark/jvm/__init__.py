"""The only room that touches Spark's Java objects: `_jvm`, `_jdf`, `_jsparkSession`, `_jsc` and py4j are named nowhere else."""
