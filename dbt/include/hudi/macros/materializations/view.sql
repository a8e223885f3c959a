{% materialization view, adapter='hudi' -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='view') -%}
  {%- set configs = adapter.hudi_configs(model) -%}
  {% if configs.get('audit') or configs.get('pre_commit_tests') %}
    {% do exceptions.warn(this ~ " is a view, which has no commit that tests could stop; they run after it") %}
  {% endif %}
  {% if not modules.re.fullmatch('[A-Za-z0-9_]+', this.identifier) %}
    {% do exceptions.raise_compiler_error(
      "the name is '" ~ this.identifier ~ "'; Spark's names hold letters, digits and _ only, set alias to such a name"
    ) %}
  {% endif %}
  {% do apply_grants(target_relation, config.get('grants')) %}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {% do hudi_run_sql_header() %}

  {% if adapter.hudi_only_plans() %}
    {% do adapter.hudi_plan_view(target_relation, sql, existing_relation) %}
    {% do store_result('main', response='planned', agate_table=none) %}
    {{ run_hooks(post_hooks, inside_transaction=True) }}
    {{ run_hooks(post_hooks, inside_transaction=False) }}
    {{ return({'relations': [target_relation]}) }}
  {% endif %}

  {% if existing_relation is not none and not existing_relation.is_view %}
    {% do hudi_try_view(existing_relation, sql) %}
    {% do adapter.drop_relation(existing_relation) %}
  {% endif %}

  {% call statement('main') -%}
    {{ get_create_view_as_sql(target_relation, sql) }}
  {%- endcall %}
  {% do adapter.cache_added(target_relation) %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}
