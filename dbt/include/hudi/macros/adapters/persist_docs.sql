{% macro hudi__persist_docs(relation, model, for_relation, for_columns) -%}
  {#- what is no longer described loses its comment, for the table outlives the run -#}
  {%- set wants_relation = for_relation and config.persist_relation_docs() -%}
  {%- set wants_columns = for_columns and config.persist_column_docs() -%}
  {% if wants_columns and model.columns %}
    {%- set documented = hudi__documented_columns(relation, model.columns) -%}
  {% endif %}
  {% if (wants_relation or wants_columns) and not relation.is_view %}
    {%- set comments = {} -%}
    {% for name in documented or {} %}
      {% do comments.update({name: documented[name]['description'] or ''}) %}
    {% endfor %}
    {% do adapter.hudi_comment(relation, (model.description or '') if wants_relation else none, comments if wants_columns else none) %}
  {% endif %}
{% endmacro %}

{#- Of the columns that a node describes those that its table has; a warning names the others. -#}
{% macro hudi__documented_columns(relation, described) %}
  {%- set names = adapter.hudi_stored_columns(relation) | map(attribute='name') | list -%}
  {%- set lowered = names | map('lower') | list -%}
  {%- set found = {} -%}
  {%- set missing = [] -%}
  {%- for name in described -%}
    {%- if name in names or (name | lower in lowered and not described[name]['quote']) -%}
      {%- do found.update({name: described[name]}) -%}
    {#- a contract may list what the model consumes, which no table keeps -#}
    {%- elif name | lower not in ['__hudi_is_deleted', '_hoodie_is_deleted', '_change_type', '_commit_time'] -%}
      {%- do missing.append(name) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- if missing -%}
    {%- do exceptions.warn("In relation " ~ relation.render() ~ ": The following columns are specified in the schema but are not present in the database: " ~ missing | join(", ")) -%}
  {%- endif -%}
  {{ return(found) }}
{% endmacro %}

{% macro hudi__alter_column_comment(relation, column_dict) %}
  {%- set comments = {} -%}
  {% for name in column_dict %}
    {% do comments.update({name: column_dict[name]['description'] or ''}) %}
  {% endfor %}
  {% do adapter.hudi_add_comments(relation, comments) %}
{% endmacro %}

{% macro hudi__alter_relation_comment(relation, relation_comment) %}
  {% do adapter.hudi_comment(relation, relation_comment, none) %}
{% endmacro %}

{#- Comments of views are part of their statement: both quotes and backslashes are escaped. -#}
{% macro hudi__comment_clause() %}
  {%- if config.persist_relation_docs() -%}
    comment '{{ model.description | replace("\\", "\\\\") | replace("'", "\\'") }}'
  {%- endif -%}
{%- endmacro -%}

{% macro get_column_comment_sql(column_name, column_dict) -%}
  {{ adapter.quote(column_name) }}
  {%- for name in column_dict if name == column_name or (name | lower == column_name | lower and not column_dict[name]['quote']) -%}
    {%- if column_dict[name]['description'] %} comment '{{ column_dict[name]['description'] | replace("\\", "\\\\") | replace("'", "\\'") }}'{% endif -%}
  {%- endfor -%}
{% endmacro %}
