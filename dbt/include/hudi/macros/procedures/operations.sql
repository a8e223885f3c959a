{#-
  Looking at a table, saving it, taking it back, repairing it: as hooks and as operations,
  dbt run-operation hudi_stats --args '{table: analytics.orders}'. What destroys has dry_run, which only says what would go.
-#}
{% macro hudi_show_commits(table, limit=20) %}
  {% do hudi__say(table, 'commits', {'limit': limit}) %}
{% endmacro %}

{% macro hudi_show_files(table, partition=none, as_of=none) %}
  {% do hudi__say(table, 'files', {'partition': partition, 'as_of': as_of}) %}
{% endmacro %}

{% macro hudi_show_partitions(table) %}
  {% do hudi__say(table, 'partitions', {}) %}
{% endmacro %}

{% macro hudi_stats(table, count=false) %}
  {% do hudi__say(table, 'stats', {'count': count}) %}
{% endmacro %}

{% macro hudi_validate(table, keys=false) %}
  {% if execute and not hudi__say(table, 'validate', {'keys': keys}) %}
    {% do exceptions.raise_compiler_error('timeline and files of ' ~ table ~ ' do not agree; what was found is in the lines above') %}
  {% endif %}
{% endmacro %}

{% macro hudi_report(table, output=none, count=false) %}
  {% if execute %}
    {% do log('report on ' ~ table ~ ': ' ~ adapter.hudi_report(table, output, count), info=true) %}
  {% endif %}
{% endmacro %}

{% macro hudi_savepoints(table) %}
  {% do hudi__say(table, 'savepoints', {}) %}
{% endmacro %}

{% macro hudi_savepoint(table, instant=none, user='', comments='') %}
  {% if execute %}
    {% do log(table ~ ': ' ~ adapter.hudi_savepoint(table, instant, user, comments), info=true) %}
  {% endif %}
{% endmacro %}

{% macro hudi_delete_savepoint(table, instant) %}
  {% if execute %}
    {% do log(table ~ ': ' ~ adapter.hudi_delete_savepoint(table, instant), info=true) %}
  {% endif %}
{% endmacro %}

{% macro hudi_restore(table, instant, dry_run=false) %}
  {% if execute %}
    {% do log(table ~ ': ' ~ adapter.hudi_restore(table, instant, dry_run=dry_run), info=true) %}
  {% endif %}
{% endmacro %}

{% macro hudi_delete_partitions(table, partitions, dry_run=false) %}
  {% if execute %}
    {% do log(table ~ ': ' ~ adapter.hudi_delete_partitions(table, partitions, dry_run=dry_run), info=true) %}
  {% endif %}
{% endmacro %}

{% macro hudi_soft_delete(table, where) %}
  {% if execute %}
    {% do log(table ~ ': ' ~ adapter.hudi_soft_delete(table, where), info=true) %}
  {% endif %}
{% endmacro %}

{% macro hudi_repair(table, kinds=none, dry_run=true, partitions=none) %}
  {% if execute %}
    {% do log(table ~ ': ' ~ adapter.hudi_repair(table, kinds, dry_run=dry_run, partitions=partitions), info=true) %}
  {% endif %}
{% endmacro %}

{#- Print what a look at a table answers, and return whether the answer is yes. -#}
{% macro hudi__say(table, what, given) %}
  {% if execute %}
    {%- set answer = adapter.hudi_look(table, what, given) -%}
    {% do log(what ~ ' of ' ~ table ~ ':', info=true) %}
    {% for line in answer['lines'] %}
      {% do log('  ' ~ line, info=true) %}
    {% endfor %}
    {% do return(answer['ok']) %}
  {% endif %}
{% endmacro %}
