{% materialization seed, adapter='hudi' %}
  {%- set run = adapter.hudi_plan(this, model) -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table', is_hudi=true) -%}
  {%- set agate_table = load_agate_table() -%}
  {% if existing_relation is not none and existing_relation.is_view %}
    {% do exceptions.raise_compiler_error("Cannot seed to '" ~ existing_relation.render() ~ "', it is a view") %}
  {% endif %}
  {%- do store_result('agate_table', response='OK', agate_table=agate_table) -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- set response = adapter.hudi_seed(run, agate_table, config.get('column_types', {})) -%}
  {% do hudi_record_main('-- ' ~ response, response) %}

  {{ return(hudi_finish_table(target_relation, post_hooks)) }}
{% endmaterialization %}
