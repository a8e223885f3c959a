{% materialization table, adapter='hudi', supported_languages=['sql', 'python'] %}
  {%- set target_relation = this.incorporate(type='table', is_hudi=true) -%}
  {%- set run = adapter.hudi_plan(this, model) -%}
  {%- set existing_relation = load_cached_relation(this) -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {% do hudi_run_sql_header() %}

  {%- set code = hudi_check_contract(compiled_code, model['language'], run) -%}
  {%- set response = adapter.hudi_rebuild(run, code) -%}
  {% do hudi_record_main(code, response) %}

  {{ return(hudi_finish_table(target_relation, post_hooks)) }}
{% endmaterialization %}
