{% macro get_incremental_bulk_insert_sql(arg_dict) %}
  {{ return({'operation': 'bulk_insert'}) }}
{% endmacro %}
