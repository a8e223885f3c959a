{#- In place of dbt's own, whose cast is dbt.safe_cast: there a value that is not of its column's type would be null, and a null
    that is expected would equal a null that was given. -#}
{% macro format_row(row, column_name_to_data_types) %}
  {%- set formatted = {} -%}
  {%- for column, value in row.items() -%}
    {%- set name = column | lower -%}
    {%- if name not in column_name_to_data_types -%}
      {%- set fixture = "expected output" if model.resource_type == 'unit_test' else "'" ~ model.name ~ "'" -%}
      {% do exceptions.raise_compiler_error(
        "Invalid column name: '" ~ name ~ "' in unit test fixture for " ~ fixture ~ ".\nAccepted columns for " ~ fixture ~ " are: "
        ~ (column_name_to_data_types.keys() | list)
      ) %}
    {%- endif -%}
    {%- do formatted.update({name: hudi_fixture_value(name, value, column_name_to_data_types[name])}) -%}
  {%- endfor -%}
  {{ return(formatted) }}
{% endmacro %}

{% macro hudi_fixture_value(column, value, type) %}
  {%- if value is none -%}
    {{ return(safe_cast('null', type)) }}
  {%- endif -%}
  {%- if cast_from_string_unsupported_for(type) -%}
    {#- an expression, which may be null; Spark names the item that does not fit -#}
    {{ return('cast(' ~ value ~ ' as ' ~ type ~ ')') }}
  {%- endif -%}
  {%- set given = dbt.string_literal(dbt.escape_single_quotes(value)) if value is string else value -%}
  {%- set problem = "value " ~ value ~ " of column " ~ column ~ " does not fit its type " ~ type -%}
  {%- set failed = 'raise_error(' ~ dbt.string_literal(dbt.escape_single_quotes(problem)) ~ ')' -%}
  {{ return('coalesce(' ~ safe_cast(given, type) ~ ', ' ~ failed ~ ')') }}
{% endmacro %}
