{#- Spark's plain form knows no order. -#}
{% macro hudi__listagg(measure, delimiter_text, order_by_clause, limit_num) -%}
  {%- set keys = adapter.hudi_order_keys(order_by_clause or '') -%}
  {% if not keys %}
    {{ return(spark__listagg(measure, delimiter_text, order_by_clause, limit_num)) }}
  {% endif %}
  {%- set value = modules.re.sub('(?i)^ *distinct +', '', measure) -%}
  {%- set fields, lines = [], [] -%}
  {%- for key in keys -%}
    {%- set name = 'k' ~ loop.index -%}
    {%- do fields.append(key.expression ~ ' as ' ~ name) -%}
    {%- set one, other = 'a.' ~ name, 'b.' ~ name -%}
    {%- set nulls, less = (1 if key.nulls_last else -1), (1 if key.descending else -1) -%}
    {%- do lines.append('when ' ~ one ~ ' is null and ' ~ other ~ ' is not null then ' ~ nulls) -%}
    {%- do lines.append('when ' ~ one ~ ' is not null and ' ~ other ~ ' is null then ' ~ -nulls) -%}
    {%- do lines.append('when ' ~ one ~ ' < ' ~ other ~ ' then ' ~ less ~ ' when ' ~ one ~ ' > ' ~ other ~ ' then ' ~ -less) -%}
  {%- endfor -%}
  {%- set all = 'collect_list(struct(' ~ fields | join(', ') ~ ', ' ~ value ~ ' as dbt_listagg_value))' -%}
  {%- set sorted = 'array_sort(' ~ all ~ ', (a, b) -> case ' ~ lines | join(' ') ~ ' else 0 end)' -%}
  {#- nulls are no elements, and none of those that a limit counts -#}
  {%- set some = 'filter(' ~ sorted ~ ', item -> item.dbt_listagg_value is not null)' -%}
  {%- set collected = 'transform(' ~ some ~ ', item -> item.dbt_listagg_value)' -%}
  {%- if value != measure -%}{%- set collected = 'array_distinct(' ~ collected ~ ')' -%}{%- endif -%}
  {%- set limited = 'slice(' ~ collected ~ ', 1, ' ~ limit_num ~ ')' if limit_num else collected -%}
  {{ return('array_join(' ~ limited ~ ', ' ~ delimiter_text ~ ')') }}
{%- endmacro %}
