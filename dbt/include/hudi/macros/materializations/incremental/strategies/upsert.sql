{% macro get_incremental_upsert_sql(arg_dict) %}
  {{ return({'operation': 'upsert'}) }}
{% endmacro %}

{% macro hudi__get_incremental_merge_sql(arg_dict) %}
  {{ return({'operation': 'upsert'}) }}
{% endmacro %}
