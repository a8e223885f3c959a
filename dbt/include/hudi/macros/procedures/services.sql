{#-
  Table services as hooks, post_hook="{{ hudi_compact(this) }}", and as operations,
  dbt run-operation hudi_compact --args '{table: analytics.orders}'.
-#}
{% macro hudi_compact(table, op='run', options=none) %}
  {%- do hudi__check_arguments('hudi_compact', kwargs, {'table': table}, 'table, op, options') -%}
  {% if execute and not hudi__shows_plans('hudi_compact', 'compactions', table, op) %}
    {% do log('compaction of ' ~ table ~ ': ' ~ adapter.hudi_compact(table, op, options), info=true) %}
  {% endif %}
{% endmacro %}

{% macro hudi_cluster(table, columns=none, op='run', strategy=none, partitions=none, where=none, options=none, dry_run=false) %}
  {%- do hudi__check_arguments('hudi_cluster', kwargs, {'table': table}, 'table, columns, op, strategy, partitions, where, options, dry_run') -%}
  {%- set dry_run = hudi__flag('dry_run', dry_run) -%}
  {% if execute and not hudi__shows_plans('hudi_cluster', 'clusterings', table, op) %}
    {#- As the hook of a model that says its columns they need not be said again: they are among the options of its table. -#}
    {%- set asked = {'columns': columns, 'strategy': strategy, 'partitions': partitions, 'where': where} -%}
    {% do log('clustering of ' ~ table ~ ': ' ~ adapter.hudi_cluster(table, 'dry_run' if dry_run else op, asked, options), info=true) %}
  {% endif %}
{% endmacro %}

{#- Print the plans of a table where they are asked for, and return whether they were; refuse an unknown word. -#}
{% macro hudi__shows_plans(name, plans, table, op) %}
  {% if op not in ['run', 'schedule', 'show'] %}
    {% do exceptions.raise_compiler_error(name ~ " has op '" ~ op ~ "'; legal values: run, schedule, show") %}
  {% endif %}
  {% if op == 'show' %}
    {% do log(plans ~ ' of ' ~ table ~ ' (newest last):', info=true) %}
    {% for line in adapter['hudi_' ~ plans](table) %}
      {% do log('  ' ~ line, info=true) %}
    {% else %}
      {% do log('  none, pending or done', info=true) %}
    {% endfor %}
  {% endif %}
  {{ return(op == 'show') }}
{% endmacro %}

{% macro hudi_clean(table, retain_commits=none, options=none, dry_run=false) %}
  {%- do hudi__check_arguments('hudi_clean', kwargs, {'table': table}, 'table, retain_commits, options, dry_run') -%}
  {%- set dry_run = hudi__flag('dry_run', dry_run) -%}
  {% if execute %}
    {% do log('clean of ' ~ table ~ ': ' ~ adapter.hudi_clean(table, retain_commits, options, dry_run=dry_run), info=true) %}
  {% endif %}
{% endmacro %}

{% macro hudi_archive(table, min_commits=none, max_commits=none, dry_run=false, options=none) %}
  {%- do hudi__check_arguments('hudi_archive', kwargs, {'table': table}, 'table, min_commits, max_commits, dry_run, options') -%}
  {%- set dry_run = hudi__flag('dry_run', dry_run) -%}
  {% if execute %}
    {% do log('archive of ' ~ table ~ ': ' ~ adapter.hudi_archive(table, min_commits, max_commits, dry_run=dry_run, options=options), info=true) %}
  {% endif %}
{% endmacro %}

{% macro hudi_rollback(table, instant, dry_run=false) %}
  {%- do hudi__check_arguments('hudi_rollback', kwargs, {'table': table, 'instant': instant}, 'table, instant, dry_run') -%}
  {%- set dry_run = hudi__flag('dry_run', dry_run) -%}
  {% if execute %}
    {% do log('rollback of ' ~ table ~ ': ' ~ adapter.hudi_rollback(table, instant, dry_run=dry_run), info=true) %}
  {% endif %}
{% endmacro %}

{% macro hudi_show_timeline(table, action=none, limit=20) %}
  {%- do hudi__check_arguments('hudi_show_timeline', kwargs, {'table': table}, 'table, action, limit') -%}
  {% if execute %}
    {% if limit is not integer or limit < 1 %}
      {% do exceptions.raise_compiler_error("hudi_show_timeline has limit '" ~ limit ~ "'; legal values: whole numbers of at least 1") %}
    {% endif %}
    {%- set commits = adapter.hudi_timeline(table) -%}
    {%- set actions = commits | map(attribute='action') | unique | sort | join(', ') -%}
    {%- set shown = [] -%}
    {% for commit in commits if action is none or commit.action == action %}
      {%- set took = '  %.1f s' % commit.seconds if commit.seconds is not none else '' -%}
      {%- set done = '  ' ~ commit.completed_at.strftime('%Y-%m-%d %H:%M:%S') if commit.completed_at is not none else '' -%}
      {% do shown.append(commit.instant ~ '  ' ~ commit.action ~ '  ' ~ commit.state ~ done ~ took) %}
    {% endfor %}
    {% do log('timeline of ' ~ table ~ ' (newest last):', info=true) %}
    {% for line in shown[-limit:] %}
      {% do log('  ' ~ line, info=true) %}
    {% else %}
      {% do log('  nothing' ~ (" with action '" ~ action ~ "'" if action is not none else '') ~ '; actions there: ' ~ (actions or 'none'), info=true) %}
    {% endfor %}
  {% endif %}
{% endmacro %}
