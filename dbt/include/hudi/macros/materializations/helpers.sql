{#- Statements of the sql_header run before the model's query, in the same session. -#}
{% macro hudi_run_sql_header() %}
  {%- set header = config.get('sql_header') -%}
  {% if header %}
    {% call statement('sql_header') %}{{ header }}{% endcall %}
  {% endif %}
{% endmacro %}

{#- For the contract dbt puts the header before the query, where it has run already. -#}
{% macro hudi__get_empty_subquery_sql(select_sql, select_sql_header=none) %}
  {{ return(default__get_empty_subquery_sql(select_sql)) }}
{% endmacro %}

{#- Keeps the compiled code under target/run and reports the commit to dbt. -#}
{% macro hudi_record_main(code, response) %}
  {{ write(code) }}
  {% do store_result('main', response=response, agate_table=none) %}
{% endmacro %}

{#- What follows the commit of a table: its descriptions, the hooks, and the result for dbt. -#}
{% macro hudi_finish_table(target_relation, post_hooks) %}
  {% if not adapter.hudi_only_plans() %}
    {% do adapter.cache_added(target_relation) %}
    {% do persist_docs(target_relation, model) %}
  {% endif %}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
  {{ return({'relations': [target_relation]}) }}
{% endmacro %}

{#- A contract is compared by columns before anything runs; with its run a model need not list what it consumes. -#}
{% macro hudi_check_contract(code, language='sql', run=none) %}
  {%- set contract = config.get('contract') -%}
  {% if contract and contract.enforced and language == 'sql' %}
    {%- set consumed = [] -%}
    {%- if run is not none and (run.plan.table.record_key or run.feed.inputs) -%}
      {%- set found = get_column_schema_from_query(code) -%}
      {%- set listed = model['columns'] | map('lower') | list -%}
      {%- for name in adapter.hudi_consumed_columns(run, found) if name | lower not in listed -%}
        {%- do consumed.append(adapter.quote(name)) -%}
      {%- endfor -%}
    {%- endif -%}
    {%- if not consumed -%}
      {% do get_assert_columns_equivalent(code) %}
      {{ return(get_select_subquery(code)) }}
    {%- endif -%}
    {#- what is consumed never reaches the table, so the contract need not know it -#}
    {%- set kept = [] -%}
    {%- for column in found if adapter.quote(column.name) not in consumed -%}
      {%- do kept.append(adapter.quote(column.name)) -%}
    {%- endfor -%}
    {% do get_assert_columns_equivalent('select ' ~ kept | join(', ') ~ ' from (\n' ~ code ~ '\n) as model_subq') %}
    {{ return('select ' ~ adapter.dispatch('get_column_names', 'dbt')() ~ ', ' ~ consumed | join(', ') ~ ' from (\n' ~ code ~ '\n) as model_subq') }}
  {% endif %}
  {{ return(code) }}
{% endmacro %}

{#- A view that cannot be made must not cost the table whose name it takes, so it is made under another name first. -#}
{% macro hudi_try_view(table, sql) %}
  {%- set trial = table.incorporate(path={'identifier': table.identifier ~ '__dbt_tmp'}, type='view') -%}
  {% call statement('try_view') -%}
    {{ get_create_view_as_sql(trial, sql) }}
  {%- endcall %}
  {% do adapter.hudi_end_trial(trial, table) %}
{% endmacro %}
