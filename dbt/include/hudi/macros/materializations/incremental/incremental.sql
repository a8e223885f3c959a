{% materialization incremental, adapter='hudi', supported_languages=['sql', 'python'] %}
  {%- set language = model['language'] -%}
  {%- set plan = adapter.hudi_plan(this, model) -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table', is_hudi=true) -%}
  {%- set other_format = existing_relation is not none and not adapter.is_hudi_table(existing_relation) -%}
  {%- set replaces = should_full_refresh() and not plan.resumes -%}
  {%- set rebuild = existing_relation is none or replaces or other_format -%}
  {%- set keeps_rows = config.get('full_refresh') is false -%}
  {% if (plan.merge.window or keeps_rows) and other_format and existing_relation.is_table and not should_full_refresh() %}
    {#- dbt goes by the relation's type where it chooses the batches of a run -#}
    {%- set why = "dbt would build its newest batches alone" if plan.merge.window else "its rows would be replaced" -%}
    {%- set way = "run it with --full-refresh" -%}
    {% if keeps_rows %}
      {%- set way = "take full_refresh: false out of the model and run it with --full-refresh once, or drop the table" -%}
    {% endif %}
    {% do exceptions.raise_compiler_error(this ~ " is a table of another format; " ~ why ~ ": " ~ way) %}
  {% endif %}
  {%- do adapter.hudi_check_sample(plan, model, compiled_code, rebuild, selected_resources) -%}
  {% if not rebuild %}
    {% do adapter.hudi_say_of_sample(plan, model, compiled_code, selected_resources) %}
  {% endif %}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {% do hudi_run_sql_header() %}

  {%- set code = hudi_check_contract(compiled_code, language, plan) -%}
  {% if rebuild %}
    {%- set response = adapter.hudi_rebuild(
      plan, model, code, language, plan.merge.operation == 'delete', not replaces
    ) -%}
    {% do hudi_record_main(code, response) %}
  {% else %}
    {%- set temp_relation = make_temp_relation(target_relation) -%}
    {% do adapter.hudi_stage(temp_relation, code, language, plan, model) %}
    {#- rows to delete name their key only, which says nothing of the table's columns -#}
    {%- set on_schema_change = 'ignore' if plan.merge.operation == 'delete' else plan.merge.on_schema_change -%}
    {% if on_schema_change != 'ignore' %}
      {% do adapter.hudi_check_fit(plan, temp_relation) %}
    {% endif %}
    {% if plan.merge.operation and on_schema_change in ['append_new_columns', 'sync_all_columns'] %}
      {#- columns change in the commit of the rows -#}
      {%- set source_columns = adapter.get_columns_in_relation(temp_relation) -%}
      {%- set dest_columns = adapter.hudi_columns_to_be(plan, source_columns, adapter.get_columns_in_relation(existing_relation)) -%}
    {% elif on_schema_change == 'fail' %}
      {%- set dest_columns = adapter.get_columns_in_relation(temp_relation) -%}
      {%- set stored_columns = adapter.get_columns_in_relation(existing_relation) -%}
      {%- set changed = adapter.hudi_changed_columns(plan, dest_columns, stored_columns, keeps_rows) -%}
      {% if changed %}
        {% do exceptions.raise_compiler_error(changed) %}
      {% endif %}
    {% else %}
      {%- set dest_columns = process_schema_changes(on_schema_change, temp_relation, existing_relation) -%}
    {% endif %}
    {% if not dest_columns %}
      {%- set dest_columns = adapter.get_columns_in_relation(existing_relation) -%}
    {% endif %}
    {% if plan.merge.operation %}
      {%- set response = adapter.hudi_write(plan, model, temp_relation, dest_columns) -%}
      {% do hudi_record_main(code, response) %}
    {% else %}
      {#- a strategy of the user's own returns SQL -#}
      {%- set strategy_macro = adapter.get_incremental_strategy_macro(context, plan.merge.strategy) -%}
      {%- set configs = adapter.hudi_configs(model) -%}
      {%- set build = strategy_macro({
        'target_relation': target_relation,
        'temp_relation': temp_relation,
        'unique_key': config.get('unique_key') or (plan.table.record_key | list),
        'dest_columns': dest_columns,
        'incremental_predicates': configs.get('predicates') or configs.get('incremental_predicates'),
      }) -%}
      {% call statement('main') %}{{ build }}{% endcall %}
    {% endif %}
  {% endif %}

  {{ return(hudi_finish_table(target_relation, post_hooks)) }}
{% endmaterialization %}
