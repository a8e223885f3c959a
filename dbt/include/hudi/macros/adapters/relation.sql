{% macro hudi__create_table_as(temporary, relation, compiled_code, language='sql') -%}
  {%- if temporary -%}
    {{ create_temporary_view(relation, compiled_code) }}
  {%- else -%}
    {%- set kind = model.resource_type if model is defined else none -%}
    {%- set is_own = this is defined and relation.schema == this.schema
        and (relation.identifier == this.identifier or relation.identifier.startswith(this.identifier ~ '__dbt')) -%}
    create or replace table {{ relation }} using hudi
    {% if kind == 'test' -%}
      as {{ adapter.hudi_failures_query(compiled_code) }}
    {%- elif is_own and kind in ('model', 'seed', 'snapshot') -%}
      {#- a materialization of the project's own makes the node's table by this, and may make others -#}
      {{ adapter.hudi_table_clauses(relation, model) }} {{ comment_clause() }} as
      {{ hudi_check_contract(compiled_code, language) }}
    {%- else -%}
      as {{ compiled_code }}
    {%- endif %}
  {%- endif -%}
{%- endmacro %}

{% macro hudi__make_temp_relation(base_relation, suffix) %}
  {#- sessions can be shared, two schemas can have one alias, and batches of one model run side by side -#}
  {%- set batch = config.get('__dbt_internal_microbatch_event_time_start', '') if config is defined else '' -%}
  {%- set unique = local_md5(invocation_id ~ base_relation.schema ~ batch)[:8] -%}
  {%- set temporary = base_relation.incorporate(path={'identifier': base_relation.identifier ~ suffix ~ '_' ~ unique}, type='view') -%}
  {% do return(temporary.include(database=false, schema=false)) %}
{% endmacro %}

{% macro hudi__drop_relation(relation) -%}
  {% do adapter.drop_relation(relation) %}
{%- endmacro %}

{% macro hudi__rename_relation(from_relation, to_relation) -%}
  {% do adapter.rename_relation(from_relation, to_relation) %}
{%- endmacro %}

{% macro hudi__get_create_view_as_sql(relation, sql) -%}
  {{ return(create_view_as(relation, sql)) }}
{%- endmacro %}

{% macro hudi__get_binding_char() %}
  {{ return('?') }}
{% endmacro %}

{#- A Python model sees whole tables; of a source dbt would give it a query where it reads a part of it. -#}
{% macro hudi__resolve_model_name(input_model_name) %}
  {{ return(input_model_name if input_model_name is string else input_model_name.render()) }}
{% endmacro %}
