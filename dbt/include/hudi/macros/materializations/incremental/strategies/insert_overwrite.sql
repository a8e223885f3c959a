{#- Replaces the partitions that the rows touch; a table without partitions is replaced whole. -#}
{% macro hudi__get_incremental_insert_overwrite_sql(arg_dict) %}
  {{ return({'operation': 'insert_overwrite'}) }}
{% endmacro %}

{#- Replaces the whole table, whatever its partitions. -#}
{% macro get_incremental_insert_overwrite_table_sql(arg_dict) %}
  {{ return({'operation': 'insert_overwrite_table'}) }}
{% endmacro %}
