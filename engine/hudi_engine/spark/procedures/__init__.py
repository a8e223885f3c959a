"""Apache Hudi's SQL procedures under Hudi's own names, arguments and columns, from a table's files alone.

Names and columns are those of Apache Hudi 0.15, and of 1.2 for procedures that came later.
"""

from hudi_engine.spark.procedures.procedure import Call, Procedure
from hudi_engine.spark.procedures.registry import PROCEDURES, find_procedure, help_text

__all__ = ["PROCEDURES", "Call", "Procedure", "find_procedure", "help_text"]
