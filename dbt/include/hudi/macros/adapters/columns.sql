{% macro hudi__get_columns_in_relation(relation) -%}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{%- endmacro %}

{% macro hudi__alter_relation_add_remove_columns(relation, add_columns, remove_columns) %}
  {% do adapter.hudi_alter_columns(relation, add_columns, remove_columns, []) %}
{% endmacro %}

{% macro hudi__alter_column_type(relation, column_name, new_column_type) -%}
  {% do adapter.hudi_alter_columns(relation, none, none, [{'column_name': column_name, 'new_type': new_column_type}]) %}
{% endmacro %}

{% macro hudi__create_columns(relation, columns) %}
  {% if columns | length > 0 %}
    {% do adapter.hudi_alter_columns(relation, columns, none, []) %}
  {% endif %}
{% endmacro %}

{% macro hudi__diff_column_data_types(source_columns, target_columns) %}
  {{ return(adapter.hudi_type_changes(source_columns, target_columns)) }}
{% endmacro %}

{#- Names of columns differ by more than upper and lower case, as in Spark. -#}
{% macro diff_columns(source_columns, target_columns) %}
  {%- set known = target_columns | map(attribute='name') | map('lower') | list -%}
  {%- set found = [] -%}
  {% for column in source_columns if column.name | lower not in known %}
    {% do found.append(column) %}
  {% endfor %}
  {{ return(found) }}
{% endmacro %}

{#- For strategies of the user's own, whose SQL writes the rows: all changes of one run are one schema commit before it. -#}
{% macro hudi__sync_column_schemas(on_schema_change, target_relation, schema_changes_dict) %}
  {%- set added = schema_changes_dict['source_not_in_target'] -%}
  {%- set removed = [] -%}
  {%- set retyped = schema_changes_dict['new_target_types'] -%}
  {% if on_schema_change == 'sync_all_columns' %}
    {%- set removed = schema_changes_dict['target_not_in_source'] -%}
  {% else %}
    {%- set retyped = adapter.hudi_new_fields(retyped, schema_changes_dict['target_columns']) -%}
  {% endif %}
  {% if added or removed or retyped %}
    {% do adapter.hudi_alter_columns(target_relation, added, removed, retyped) %}
  {% endif %}
  {% do log('In ' ~ target_relation ~ ': ' ~ on_schema_change ~ ': added ' ~ added ~ ', removed ' ~ removed ~ ', changed ' ~ retyped) %}
{% endmacro %}
