{% macro hudi__persist_docs(relation, model, for_relation, for_columns) -%}
  {%- set wants_relation = for_relation and config.persist_relation_docs() and model.description -%}
  {%- set wants_columns = for_columns and config.persist_column_docs() and model.columns -%}
  {% if wants_columns %}
    {%- set existing = adapter.get_columns_in_relation(relation) | map(attribute='name') | list -%}
    {%- set documented = validate_doc_columns(relation, model.columns, existing) -%}
  {% endif %}
  {% if (wants_relation or wants_columns) and not relation.is_view %}
    {%- set comments = {} -%}
    {% for name in documented or {} %}
      {% do comments.update({name: documented[name]['description'] or ''}) %}
    {% endfor %}
    {% do adapter.hudi_comment(relation, model.description if wants_relation else none, comments if wants_columns else none) %}
  {% endif %}
{% endmacro %}

{% macro hudi__alter_column_comment(relation, column_dict) %}
  {%- set comments = {} -%}
  {% for name in column_dict %}
    {% do comments.update({name: column_dict[name]['description'] or ''}) %}
  {% endfor %}
  {% do adapter.hudi_comment(relation, none, comments) %}
{% endmacro %}

{% macro hudi__alter_relation_comment(relation, relation_comment) %}
  {% do adapter.hudi_comment(relation, relation_comment, none) %}
{% endmacro %}
