{#- As dbt's own, but a table of another format is not continued: the run replaces it, and then it takes all rows. -#}
{% macro is_incremental() %}
  {%- if not execute or model.config.materialized != 'incremental' or should_full_refresh() -%}
    {{ return(False) }}
  {%- endif -%}
  {%- set relation = adapter.get_relation(this.database, this.schema, this.table) -%}
  {%- if relation is none or relation.type != 'table' -%}
    {{ return(False) }}
  {%- endif -%}
  {{ return(relation.is_hudi or adapter.is_hudi_table(relation)) }}
{% endmacro %}
