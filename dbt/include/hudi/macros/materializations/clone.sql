{#- A clone is a view over the other environment's relation: no second copy of a Hudi table shares its files. -#}
{%- materialization clone, adapter='hudi' -%}
  {%- if not defer_relation -%}
    {{ log("No relation found in state manifest for " ~ model.unique_id, info=True) }}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- if existing_relation and not flags.FULL_REFRESH -%}
    {{ log("Relation " ~ existing_relation ~ " already exists", info=True) }}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {%- set target_relation = this.incorporate(type='view') -%}
  {%- if target_relation.render() == defer_relation.render() -%}
    {{ log("Target relation and defer relation are the same, skipping clone for relation: " ~ target_relation.render()) }}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {%- if existing_relation is not none and not existing_relation.is_view -%}
    {% do adapter.drop_relation(existing_relation) %}
  {%- endif -%}
  {% call statement('main') -%}
    {{ get_create_view_as_sql(target_relation, 'select * from ' ~ defer_relation.render()) }}
  {%- endcall %}
  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization -%}

{% macro hudi__can_clone_table() %}
  {{ return(False) }}
{% endmacro %}
