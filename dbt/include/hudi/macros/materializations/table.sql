{% materialization table, adapter='hudi', supported_languages=['sql', 'python'] %}
  {%- set language = model['language'] -%}
  {%- set target_relation = this.incorporate(type='table', is_hudi=true) -%}
  {%- set plan = adapter.hudi_plan(this, model) -%}
  {%- set existing_relation = load_cached_relation(this) -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {% do hudi_run_sql_header() %}

  {%- set code = hudi_check_contract(compiled_code, language) -%}
  {%- set response = adapter.hudi_rebuild(plan, model, code, language) -%}
  {% do hudi_record_main(code, response) %}

  {% do persist_docs(target_relation, model) %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
