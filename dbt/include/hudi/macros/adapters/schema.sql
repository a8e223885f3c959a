{% macro hudi__create_schema(relation) -%}
  {% do adapter.create_schema(relation) %}
{% endmacro %}

{% macro hudi__drop_schema(relation) -%}
  {% do adapter.drop_schema(relation) %}
{% endmacro %}

{# Spark knows no users: one warning for all models before the run #}
{% macro hudi__apply_grants(relation, grant_config, should_revoke=True) -%}
{%- endmacro %}
