{#- In ANSI mode a cast that fails and an index that is too large are errors; these macros promise null and ''. -#}
{% macro hudi__safe_cast(field, type) %}
  {%- set plain = field.strip('"').strip("'") if (cast_from_string_unsupported_for(type) and field is string) else field -%}
  try_cast({{ plain }} as {{ type }})
{%- endmacro %}

{% macro hudi__split_part(string_text, delimiter_text, part_number) %}
  {{ return('split_part(' ~ string_text ~ ', ' ~ delimiter_text ~ ', ' ~ (part_number or 1) ~ ')') }}
{%- endmacro %}
