{#- The clone of a Hudi table is a table that shares its base files; of anything else it is a view. -#}
{%- materialization clone, adapter='hudi' -%}
  {%- if not defer_relation -%}
    {{ log("No relation found in state manifest for " ~ model.unique_id, info=True) }}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- if existing_relation and not flags.FULL_REFRESH -%}
    {{ log("Relation " ~ existing_relation ~ " already exists", info=True) }}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {%- if this.render() == defer_relation.render() -%}
    {{ log("Target relation and defer relation are the same, skipping clone for relation: " ~ this.render()) }}
    {{ return({'relations': []}) }}
  {%- endif -%}

  {%- set is_table = adapter.hudi_shares_files(defer_relation) and can_clone_table() -%}
  {%- set target_relation = this.incorporate(type='table', is_hudi=true) if is_table else this.incorporate(type='view') -%}
  {%- if is_table -%}
    {%- set run = adapter.hudi_plan(this, model) -%}
    {#- A Hudi table is replaced at once by its successor; what is of another kind goes when that is made. -#}
    {%- set replaces = adapter.is_hudi_table(existing_relation) -%}
    {%- set response = adapter.hudi_clone_model(run, defer_relation, replace=replaces) -%}
    {% do store_result('main', response=response, agate_table=none) %}
    {% do persist_docs(target_relation, model) %}
  {%- else -%}
    {%- set query = 'select * from ' ~ defer_relation.render() -%}
    {%- if existing_relation is not none and not existing_relation.is_view -%}
      {% do hudi_try_view(existing_relation, query) %}
      {% do adapter.drop_relation(existing_relation) %}
    {%- endif -%}
    {% call statement('main') -%}
      {{ get_create_view_as_sql(target_relation, query) }}
    {%- endcall %}
  {%- endif -%}
  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization -%}

{% macro hudi__can_clone_table() %}
  {{ return(True) }}
{% endmacro %}
