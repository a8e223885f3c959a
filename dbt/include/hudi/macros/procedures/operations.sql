{#-
  Looking at a table, saving it, taking it back, repairing it: as hooks and as operations,
  dbt run-operation hudi_stats --args '{table: analytics.orders}'. What destroys has dry_run, which only says what would go.
-#}
{% macro hudi_show_commits(table, limit=20) %}
  {%- do hudi__check_arguments('hudi_show_commits', kwargs, {'table': table}, 'table, limit') -%}
  {% do hudi__say(table, 'commits', {'limit': limit}) %}
{% endmacro %}

{% macro hudi_show_files(table, partition=none, as_of=none) %}
  {%- do hudi__check_arguments('hudi_show_files', kwargs, {'table': table}, 'table, partition, as_of') -%}
  {% do hudi__say(table, 'files', {'partition': partition, 'as_of': as_of}) %}
{% endmacro %}

{% macro hudi_show_partitions(table) %}
  {%- do hudi__check_arguments('hudi_show_partitions', kwargs, {'table': table}, 'table') -%}
  {% do hudi__say(table, 'partitions', {}) %}
{% endmacro %}

{% macro hudi_stats(table, count=false) %}
  {%- do hudi__check_arguments('hudi_stats', kwargs, {'table': table}, 'table, count') -%}
  {%- set count = hudi__flag('count', count) -%}
  {% do hudi__say(table, 'stats', {'count': count}) %}
{% endmacro %}

{% macro hudi_validate(table, keys=false) %}
  {%- do hudi__check_arguments('hudi_validate', kwargs, {'table': table}, 'table, keys') -%}
  {%- set keys = hudi__flag('keys', keys) -%}
  {% if execute %}
    {% do adapter.hudi_refuse_harm(table, hudi__say(table, 'validate', {'keys': keys})) %}
  {% endif %}
{% endmacro %}

{% macro hudi_report(table, output=none, count=false) %}
  {%- do hudi__check_arguments('hudi_report', kwargs, {'table': table}, 'table, output, count') -%}
  {%- set count = hudi__flag('count', count) -%}
  {% if execute %}
    {% do log('report on ' ~ table ~ ': ' ~ adapter.hudi_report(table, output, count), info=true) %}
  {% endif %}
{% endmacro %}

{% macro hudi_savepoints(table) %}
  {%- do hudi__check_arguments('hudi_savepoints', kwargs, {'table': table}, 'table') -%}
  {% do hudi__say(table, 'savepoints', {}) %}
{% endmacro %}

{% macro hudi_savepoint(table, instant=none, user='', comments='') %}
  {%- do hudi__check_arguments('hudi_savepoint', kwargs, {'table': table}, 'table, instant, user, comments') -%}
  {% do hudi__do(table, 'hudi_savepoint', {'instant': instant, 'user': user, 'comments': comments}) %}
{% endmacro %}

{% macro hudi_delete_savepoint(table, instant) %}
  {%- do hudi__check_arguments('hudi_delete_savepoint', kwargs, {'table': table, 'instant': instant}, 'table, instant') -%}
  {% do hudi__do(table, 'hudi_delete_savepoint', {'instant': instant}) %}
{% endmacro %}

{% macro hudi_restore(table, instant, dry_run=false) %}
  {%- do hudi__check_arguments('hudi_restore', kwargs, {'table': table, 'instant': instant}, 'table, instant, dry_run') -%}
  {%- set dry_run = hudi__flag('dry_run', dry_run) -%}
  {% do hudi__do(table, 'hudi_restore', {'instant': instant, 'dry_run': dry_run}) %}
{% endmacro %}

{% macro hudi_delete_partitions(table, partitions, dry_run=false) %}
  {%- do hudi__check_arguments('hudi_delete_partitions', kwargs, {'table': table, 'partitions': partitions}, 'table, partitions, dry_run') -%}
  {%- set dry_run = hudi__flag('dry_run', dry_run) -%}
  {% do hudi__do(table, 'hudi_delete_partitions', {'partitions': partitions, 'dry_run': dry_run}) %}
{% endmacro %}

{% macro hudi_soft_delete(table, where) %}
  {%- do hudi__check_arguments('hudi_soft_delete', kwargs, {'table': table, 'where': where}, 'table, where') -%}
  {% do hudi__do(table, 'hudi_soft_delete', {'where': where}) %}
{% endmacro %}

{% macro hudi_repair(table, kinds=none, dry_run=true, partitions=none) %}
  {%- do hudi__check_arguments('hudi_repair', kwargs, {'table': table}, 'table, kinds, dry_run, partitions') -%}
  {%- set dry_run = hudi__flag('dry_run', dry_run) -%}
  {% do hudi__do(table, 'hudi_repair', {'kinds': kinds, 'dry_run': dry_run, 'partitions': partitions}) %}
{% endmacro %}

{#- Have the adapter do something to a table, and print what it says. -#}
{% macro hudi__do(table, method, given) %}
  {% if execute %}
    {% do log(table ~ ': ' ~ adapter[method](table, **given), info=true) %}
  {% endif %}
{% endmacro %}

{% macro hudi_clone(table, clone, at=none, replace=false, copy=false) %}
  {%- do hudi__check_arguments('hudi_clone', kwargs, {'table': table, 'clone': clone}, 'table, clone, at, replace, copy') -%}
  {%- set replace = hudi__flag('replace', replace) -%}
  {%- set copy = hudi__flag('copy', copy) -%}
  {% if execute %}
    {% do log(adapter.hudi_clone_table(table, clone, at, replace=replace, copy=copy), info=true) %}
  {% endif %}
{% endmacro %}

{% macro hudi_adopt(table, location=none) %}
  {%- do hudi__check_arguments('hudi_adopt', kwargs, {'table': table}, 'table, location') -%}
  {% do hudi__do(table, 'hudi_adopt', {'location': location}) %}
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

{#- An argument that is misspelt or not given is said by name, with those there are. -#}
{% macro hudi__check_arguments(name, others, needed, legal) %}
  {% for other in others %}
    {% do exceptions.raise_compiler_error(name ~ " has no argument '" ~ other ~ "'; its arguments: " ~ legal) %}
  {% endfor %}
  {% for argument in needed %}
    {% if needed[argument] is undefined or needed[argument] is none %}
      {%- set told = name ~ " needs " ~ argument ~ "; its arguments: " ~ legal -%}
      {%- set doubt = ". It got none, or a name that nothing defines" if needed[argument] is undefined else "" -%}
      {% do exceptions.raise_compiler_error(told ~ doubt) %}
    {% endif %}
  {% endfor %}
{% endmacro %}

{#- A switch as it is written in YAML or as text; a word that is neither true nor false is refused. -#}
{% macro hudi__flag(name, value) %}
  {%- set meant = {'true': true, 'false': false}.get(value | string | lower | trim) -%}
  {%- if meant is none -%}
    {% do exceptions.raise_compiler_error(name ~ " is '" ~ value ~ "'; it can be true or false") %}
  {%- endif -%}
  {{ return(meant) }}
{% endmacro %}
