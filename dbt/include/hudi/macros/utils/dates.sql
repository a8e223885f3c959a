{#- dbt-spark's own asserts nothing (nvl2 of a null never reaches the assertion) and says the call three times, nested nine times:
    a datediff of some hundred lines for Spark to plan, and a view too long for a metastore in Derby. -#}
{% macro hudi__assert_not_null(function, arg) %}
    {{- function }}({{ arg }})
{%- endmacro %}
