{#- Orders by columns in ascending order; Spark's plain form takes the rest. -#}
{% macro hudi__listagg(measure, delimiter_text, order_by_clause, limit_num) -%}
  {%- set keys = modules.re.sub('(?i)^ *order +by +', '', order_by_clause or '') | trim -%}
  {% if not keys or ' desc' in keys | lower or 'distinct' in measure | lower %}
    {{ return(spark__listagg(measure, delimiter_text, order_by_clause, limit_num)) }}
  {% endif %}
  {%- set sorted = 'array_sort(collect_list(struct(' ~ keys ~ ', ' ~ measure ~ ' as dbt_listagg_value)))' -%}
  {%- set collected = 'transform(' ~ sorted ~ ', item -> item.dbt_listagg_value)' -%}
  {%- set limited = 'slice(' ~ collected ~ ', 1, ' ~ limit_num ~ ')' if limit_num else collected -%}
  {{ return('array_join(' ~ limited ~ ', ' ~ delimiter_text ~ ')') }}
{%- endmacro %}
