{% macro hudi__get_incremental_default_sql(arg_dict) %}
  {{ return({'operation': 'upsert'} if arg_dict['unique_key'] else {'operation': 'insert'}) }}
{% endmacro %}
