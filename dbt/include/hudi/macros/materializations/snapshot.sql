{% materialization snapshot, adapter='hudi' %}
  {%- set run = adapter.hudi_plan(this, model) -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table', is_hudi=true) -%}
  {%- set target_exists = existing_relation is not none -%}
  {% if target_exists and not adapter.is_hudi_table(existing_relation) %}
    {%- set found = 'a view' if existing_relation.is_view else 'a table of another format' -%}
    {% do exceptions.raise_compiler_error(
      this ~ " is " ~ found ~ ", and a snapshot keeps its history in a Hudi table: drop or rename it"
    ) %}
  {% endif %}
  {% if target_exists %}
    {% do adapter.hudi_check_sample(run, selected_resources) %}
  {% endif %}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {% do hudi_run_sql_header() %}

  {%- set strategy_macro = strategy_dispatch(config.get('strategy')) -%}
  {%- set strategy = strategy_macro(model, 'snapshotted_data', 'source_data', model['config'], target_exists) -%}

  {% do adapter.hudi_check_snapshot(run, model['compiled_code'], strategy.hard_deletes or none) %}

  {% if not target_exists %}
    {%- set code = build_snapshot_table(strategy, model['compiled_code']) -%}
    {% do check_time_data_types(code) %}
    {%- set response = adapter.hudi_rebuild(run, code) -%}
  {% else %}
    {%- set columns = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
    {% do adapter.assert_valid_snapshot_target_given_strategy(target_relation, columns, strategy) %}
    {%- set moments = [columns['dbt_updated_at'], columns['dbt_valid_from'], columns['dbt_valid_to']] -%}
    {%- set staging = make_temp_relation(target_relation) -%}
    {%- set query = adapter.hudi_snapshot_query(
      run, staging.identifier ~ '_query', model['compiled_code'], config.get('updated_at') or '', moments
    ) -%}
    {%- set code = snapshot_staging_table(strategy, query, target_relation) -%}
    {% do check_time_data_types(code) %}
    {% do adapter.hudi_stage(run, staging, code) %}
    {%- set response = adapter.hudi_snapshot(run, staging, columns['dbt_valid_to'], columns['dbt_is_deleted'], target_relation) -%}
  {% endif %}
  {% do hudi_record_main(code, response) %}

  {{ return(hudi_finish_table(target_relation, post_hooks)) }}
{% endmaterialization %}

{# In place of dbt's own, which compares names by case and would take a column in another one for new at every run. #}
{% macro snapshot_check_all_get_existing_columns(node, target_exists, check_cols_config) -%}
  {%- if not target_exists -%}
    {{ return((false, [])) }}
  {%- endif -%}
  {%- if check_cols_config == 'all' -%}
    {%- set asked = get_columns_in_query(node['compiled_code']) -%}
  {%- else -%}
    {%- set asked = check_cols_config -%}
  {%- endif -%}
  {%- set snapshot = adapter.get_relation(database=node.database, schema=node.schema, identifier=node.alias) -%}
  {%- set stored = adapter.get_columns_in_relation(snapshot) | map(attribute='name') | list -%}
  {{ return(adapter.hudi_checked_columns(asked, stored)) }}
{%- endmacro %}
