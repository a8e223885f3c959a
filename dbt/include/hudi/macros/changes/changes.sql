{#-
  The rows of a Hudi table that changed since this model's last run, as a relation:
  select order_id, amount, c._change_type from {{ hudi_changes(ref('orders')) }} c
-#}
{% macro hudi_changes(relation, mode='net', on_gap='fail', begin=none, end=none) %}
  {%- if not execute or hudi_is_given(relation) -%}
    {{ return(relation) }}
  {%- endif -%}
  {%- set given = dict(kwargs, mode=mode, on_gap=on_gap, begin=begin, end=end) -%}
  {%- set fresh = hudi_takes_all('hudi_changes') -%}
  {{ return(adapter.hudi_changes(relation, this or relation, fresh, given, model)) }}
{% endmacro %}

{#-
  The rows of the files of a source that are new or changed since this model's last run, as a relation:
  select order_id, amount, _metadata.file_path as loaded_from from {{ hudi_new_files(source('shop', 'orders')) }}
-#}
{% macro hudi_new_files(relation, max_files=none, max_bytes=none, bad_files='fail', start_after=none) %}
  {%- if not execute or hudi_is_given(relation) -%}
    {{ return(relation) }}
  {%- endif -%}
  {%- set given = dict(kwargs, max_files=max_files, max_bytes=max_bytes, bad_files=bad_files, start_after=start_after) -%}
  {%- set fresh = hudi_takes_all('hudi_new_files') -%}
  {{ return(adapter.hudi_new_files(relation, this or relation, fresh, given, model)) }}
{% endmacro %}

{#- Whether a node takes all rows of its inputs, and not what came since its last run; refuses one that can take neither. -#}
{% macro hudi_takes_all(macro) %}
  {%- if model.resource_type != 'model' -%}
    {{ return(true) }}
  {%- endif -%}
  {%- do hudi_check_temporary(macro) -%}
  {%- if config.get('materialized') == 'incremental' -%}
    {%- do adapter.hudi_check_takes_changes(model, macro) -%}
  {%- endif -%}
  {{ return(config.get('materialized') != 'incremental' or should_full_refresh()) }}
{% endmacro %}

{#- A Hudi table as it was: {{ hudi_as_of(ref('orders'), '2026-11-01') }} -#}
{% macro hudi_as_of(relation, when) %}
  {%- if not execute or hudi_is_given(relation) -%}
    {{ return(relation) }}
  {%- endif -%}
  {%- if model.resource_type == 'model' -%}
    {%- do hudi_check_temporary('hudi_as_of') -%}
  {%- endif -%}
  {{ return(adapter.hudi_as_of(relation, this or relation, when)) }}
{% endmacro %}

{#- Whether a unit test gives the rows of a relation: they are its changes, or its earlier state. -#}
{% macro hudi_is_given(relation) %}
  {{ return(model.resource_type == 'unit_test' and relation.is_cte) }}
{% endmacro %}

{#- With the config as_of a node reads the tables it names as they were then. -#}
{% macro ref() %}
  {{ return(hudi_pinned(builtins.ref(*varargs, **kwargs))) }}
{% endmacro %}

{% macro source() %}
  {{ return(hudi_pinned(builtins.source(*varargs))) }}
{% endmacro %}

{% macro hudi_pinned(relation) %}
  {%- if not execute or config is not defined or model is not defined or adapter.type() != 'hudi' -%}
    {{ return(relation) }}
  {%- endif -%}
  {%- set as_of = adapter.hudi_configs(model).get('as_of') -%}
  {%- if as_of is none or relation.is_view or hudi_is_given(relation) -%}
    {{ return(relation) }}
  {%- endif -%}
  {%- if relation.is_cte -%}
    {% do exceptions.raise_compiler_error(model.name ~ " has as_of and selects from the ephemeral model " ~ relation.identifier ~ ", which would read its tables as they are now: make that a table, or name the state there with hudi_as_of() in a table") %}
  {%- endif -%}
  {{ return(hudi_as_of(relation, as_of)) }}
{% endmacro %}

{#- A data test is looked at when its query is made. -#}
{% macro hudi__get_test_sql(main_sql, fail_calc, warn_if, error_if, limit) -%}
  {%- do adapter.hudi_check_test(model) -%}
  {{ default__get_test_sql(main_sql, fail_calc, warn_if, error_if, limit) }}
{%- endmacro %}

{#- The rows have a name for the time of the run only, which a view or another model's query would outlive. -#}
{% macro hudi_check_temporary(what) %}
  {%- if config.get('materialized') in ['view', 'ephemeral', 'materialized_view'] -%}
    {% do exceptions.raise_compiler_error(what ~ " is used in a model materialized as '" ~ config.get('materialized') ~ "'; its rows are there during a run only: make the model a table or incremental") %}
  {%- endif -%}
{% endmacro %}

{#- dbt run-operation hudi_checkpoint --args '{table: orders_daily, input: analytics.orders, set: 20261101000000000}' -#}
{% macro hudi_checkpoint(table, input=none, set=none, reset=false) %}
  {% do hudi__run('checkpoint', {'table': table, 'input': input, 'set': set, 'reset': reset}, kwargs) %}
{% endmacro %}
