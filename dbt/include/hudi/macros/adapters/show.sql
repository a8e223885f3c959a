{% macro hudi__get_limit_sql(sql, limit) %}
  {#- a statement that writes is legal with a limit behind its rows, which would then be cut without a word -#}
  {%- do adapter.hudi_check_query(sql, model if model is defined else none) -%}
  {{ sql }}
  {% if limit is not none %}
  limit {{ limit }}
  {%- endif -%}
{% endmacro %}
