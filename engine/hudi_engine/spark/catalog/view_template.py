"""Views over tables' files, made as copies of the first one that Spark has analysed in a session.

To run ``CREATE VIEW`` costs an analysis of the whole query with a look at the table's files, most of what it costs to show a
merge-on-read table. Such views differ in names, columns and text alone, which are known without it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from hudi_engine.spark.catalog.sql_text import literal
from hudi_engine.spark.jvm.catalog import parsed_columns, some
from hudi_engine.spark.jvm.plans import parse

if TYPE_CHECKING:
    from hudi_engine.spark.catalog.entry import CatalogEntry

_COLUMNS = re.compile(r"view\.query\.out\.")
_OF_SPARK = "view."


@dataclass(frozen=True)
class _Template:
    """A view of Spark's catalog as the values of its case class.

    Args:
        fields: Names and values of its fields, in order.
        properties: What Spark has noted of the session in its properties.
    """

    handle: Any
    fields: Mapping[str, Any]
    properties: Mapping[str, str]

    def copy(self, **changes: Any) -> Any:
        """Return the view with other values of some fields."""
        return self.handle.copy(*{**self.fields, **changes}.values())


_templates: WeakKeyDictionary[SparkSession, _Template] = WeakKeyDictionary()


def remember_view(spark: SparkSession, entry: CatalogEntry) -> None:
    """Keep a view over a table's files as the one to copy in this session; Spark 3.5 does not tell what it is made of."""
    if spark.version.startswith("3."):
        return
    handle = entry.handle
    fields = {
        handle.productElementName(place): handle.productElement(place)
        for place in range(handle.productArity())
    }
    noted = {
        key: value
        for key, value in entry.properties.items()
        if key.startswith(_OF_SPARK) and not _COLUMNS.match(key)
    }
    _templates[spark] = _Template(handle, fields, noted)


def copied_view(
    spark: SparkSession,
    identifier: Any,
    columns: Sequence[tuple[str, str]],
    query: str,
    comment: str,
    properties: Mapping[str, str],
) -> Any:
    """Return the definition of a view over a table's files, None while there is none to copy in this session.

    Args:
        query: Its SELECT, which returns those columns, with every name in full.
        comment: Its comment, ``""`` for none.
    """
    template = _templates.get(spark)
    if template is None:
        return None
    out = {f"view.query.out.col.{place}": name for place, (name, _) in enumerate(columns)}
    own = {key: value for key, value in properties.items() if not key.startswith(_OF_SPARK)}
    told = {**own, **template.properties, **out, "view.query.out.numCols": str(len(columns))}
    pairs = ", ".join(f"{literal(key)}={literal(value)}" for key, value in told.items())
    return template.copy(
        identifier=identifier,
        schema=parsed_columns(spark, ", ".join(definition for _, definition in columns)),
        properties=parse(spark, f"CREATE VIEW v TBLPROPERTIES ({pairs}) AS SELECT 1").properties(),
        viewText=some(spark, query),
        viewOriginalText=some(spark, query),
        comment=some(spark, comment or None),
    )
