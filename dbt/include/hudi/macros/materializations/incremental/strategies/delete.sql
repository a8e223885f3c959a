{#- The model's rows name the keys to delete. -#}
{% macro get_incremental_delete_sql(arg_dict) %}
  {{ return({'operation': 'delete'}) }}
{% endmacro %}
