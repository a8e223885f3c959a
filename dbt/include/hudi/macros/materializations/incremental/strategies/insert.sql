{% macro get_incremental_insert_sql(arg_dict) %}
  {{ return({'operation': 'insert'}) }}
{% endmacro %}

{% macro hudi__get_incremental_append_sql(arg_dict) %}
  {{ return({'operation': 'insert'}) }}
{% endmacro %}
