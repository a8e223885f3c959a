{% materialization incremental, adapter='hudi', supported_languages=['sql', 'python'] %}
  {%- set run = adapter.hudi_plan(this, model) -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table', is_hudi=true) -%}
  {% do adapter.hudi_choose_build(run, existing_relation, should_full_refresh()) %}
  {% do adapter.hudi_check_sample(run, selected_resources) %}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {% do hudi_run_sql_header() %}

  {%- set code = hudi_check_contract(compiled_code, model['language'], run) -%}
  {% if run.rebuilds %}
    {%- set response = adapter.hudi_rebuild(run, code) -%}
    {% do hudi_record_main(code, response) %}
  {% else %}
    {%- set temp_relation = make_temp_relation(target_relation) -%}
    {% do adapter.hudi_stage(run, temp_relation, code) %}
    {%- set dest_columns = adapter.hudi_columns_to_write(run, temp_relation, existing_relation) -%}
    {% if run.plan.merge.operation %}
      {%- set response = adapter.hudi_write(run, temp_relation, dest_columns) -%}
      {% do hudi_record_main(code, response) %}
    {% else %}
      {{ hudi_run_own_strategy(run, target_relation, temp_relation, existing_relation, dest_columns) }}
    {% endif %}
  {% endif %}

  {{ return(hudi_finish_table(target_relation, post_hooks)) }}
{% endmaterialization %}

{#- A strategy of the project's own returns SQL, before which dbt's macros change the columns of the table. -#}
{% macro hudi_run_own_strategy(run, target_relation, temp_relation, existing_relation, dest_columns) %}
  {% do adapter.hudi_refuse_plan('its strategy is SQL of a macro, which no plan runs') %}
  {%- set mode = run.plan.merge.on_schema_change -%}
  {% if mode in ['append_new_columns', 'sync_all_columns'] %}
    {%- set dest_columns = process_schema_changes(mode, temp_relation, existing_relation) or dest_columns -%}
  {% endif %}
  {%- set strategy_macro = adapter.get_incremental_strategy_macro(context, run.plan.merge.strategy) -%}
  {%- set configs = adapter.hudi_configs(model) -%}
  {%- set build = strategy_macro({
    'target_relation': target_relation,
    'temp_relation': temp_relation,
    'unique_key': config.get('unique_key') or (run.plan.table.record_key | list),
    'dest_columns': dest_columns,
    'incremental_predicates': configs.get('predicates') or configs.get('incremental_predicates'),
  }) -%}
  {% call statement('main') %}{{ build }}{% endcall %}
{% endmacro %}
