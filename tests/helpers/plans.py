"""How Spark runs its plans in the tests."""

from __future__ import annotations

import pyspark

# Java made for each of thousands of plans over a few rows takes longer than the plans. Spark makes it, as in a user's
# session, where the tests run on PySpark 3.5, in processes that they start, and in the demo.
PLANS_AS_THEY_ARE = (
    {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    if pyspark.__version__ >= "4"
    else {}
)
