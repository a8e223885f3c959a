{% macro hudi__create_schema(relation) -%}
  {% do adapter.create_schema(relation) %}
{% endmacro %}

{% macro hudi__drop_schema(relation) -%}
  {% do adapter.drop_schema(relation) %}
{% endmacro %}

{% macro hudi__apply_grants(relation, grant_config, should_revoke=True) -%}
  {% if grant_config %}
    {% do exceptions.raise_compiler_error("grants is set for " ~ relation ~ ", but open-source Spark has no GRANT; leave it out") %}
  {% endif %}
{%- endmacro %}
