{# A raw data set as it landed: a folder of Parquet files that other programs write. #}
{% macro landed(name) -%}
  parquet.`{{ var('landing') }}/{{ name }}`
{%- endmacro %}

