{#-
  Operations on a table: as hooks, post_hook="{{ hudi_compact(this) }}", and as operations,
  dbt run-operation hudi_stats --args '{table: analytics.orders}'. docs/operations.md describes their arguments, which
  are checked by the operation. What takes files or commits away has dry_run, which only reports what would be done.
-#}
{% macro hudi_show_timeline(table, action=none, limit=20, options=none) %}
  {% do hudi__run('show_timeline', {'table': table, 'action': action, 'limit': limit, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_show_commits(table, limit=20, options=none) %}
  {% do hudi__run('show_commits', {'table': table, 'limit': limit, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_show_files(table, partition=none, as_of=none, options=none) %}
  {% do hudi__run('show_files', {'table': table, 'partition': partition, 'as_of': as_of, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_show_partitions(table, options=none) %}
  {% do hudi__run('show_partitions', {'table': table, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_lookup(table, keys, columns=none, options=none) %}
  {% do hudi__run('lookup', {'table': table, 'keys': keys, 'columns': columns, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_explain(table, filters, options=none) %}
  {% do hudi__run('explain', {'table': table, 'filters': filters, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_stats(table, count=false, options=none) %}
  {% do hudi__run('stats', {'table': table, 'count': count, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_validate(table, keys=false, deep=false, options=none) %}
  {% do hudi__run('validate', {'table': table, 'keys': keys, 'deep': deep, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_verify(table, as_of=none, note=false, strict=false, options=none) %}
  {% do hudi__run('verify', {'table': table, 'as_of': as_of, 'note': note, 'strict': strict, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_diff(table, other=none, as_of=none, other_as_of=none, limit=5, options=none) %}
  {% do hudi__run('diff', {'table': table, 'other': other, 'as_of': as_of, 'other_as_of': other_as_of, 'limit': limit, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_report(table, output=none, count=false, options=none) %}
  {% do hudi__run('report', {'table': table, 'output': output, 'count': count, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_manifest(table, names=false, options=none) %}
  {% do hudi__run('manifest', {'table': table, 'names': names, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_savepoints(table, options=none) %}
  {% do hudi__run('savepoints', {'table': table, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_savepoint(table, instant=none, user='', comments='', delete=false, options=none) %}
  {% do hudi__run('savepoint', {'table': table, 'instant': instant, 'user': user, 'comments': comments, 'delete': delete, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_delete_savepoint(table, instant, options=none) %}
  {% do hudi__run('delete_savepoint', {'table': table, 'instant': instant, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_compact(table, op='run', options=none, instant=none) %}
  {% do hudi__run('compact', {'table': table, 'op': op, 'options': options, 'instant': instant}, kwargs) %}
{% endmacro %}

{% macro hudi_cluster(table, columns=none, op='run', strategy=none, partitions=none, where=none, options=none, dry_run=false, instant=none) %}
  {#- As the hook of a model that names its columns they need not be named again: they are among the options of its table. -#}
  {% do hudi__run('cluster', {'table': table, 'columns': columns, 'op': op, 'strategy': strategy, 'partitions': partitions, 'where': where, 'options': options, 'dry_run': dry_run, 'instant': instant}, kwargs) %}
{% endmacro %}

{% macro hudi_clean(table, retain_commits=none, options=none, dry_run=false) %}
  {% do hudi__run('clean', {'table': table, 'retain_commits': retain_commits, 'options': options, 'dry_run': dry_run}, kwargs) %}
{% endmacro %}

{% macro hudi_archive(table, min_commits=none, max_commits=none, dry_run=false, options=none) %}
  {% do hudi__run('archive', {'table': table, 'min_commits': min_commits, 'max_commits': max_commits, 'dry_run': dry_run, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_rollback(table, instant, dry_run=false, options=none) %}
  {% do hudi__run('rollback', {'table': table, 'instant': instant, 'dry_run': dry_run, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_restore(table, instant, dry_run=false, options=none) %}
  {% do hudi__run('restore', {'table': table, 'instant': instant, 'dry_run': dry_run, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_upgrade(table, version, options=none) %}
  {% do hudi__run('upgrade', {'table': table, 'version': version, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_downgrade(table, version, options=none) %}
  {% do hudi__run('downgrade', {'table': table, 'version': version, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_show_indexes(table, options=none) %}
  {% do hudi__run('show_indexes', {'table': table, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_create_index(table, index, columns=none, expression=none, options=none) %}
  {% do hudi__run('create_index', {'table': table, 'index': index, 'columns': columns, 'expression': expression, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_drop_index(table, index, options=none) %}
  {% do hudi__run('drop_index', {'table': table, 'index': index, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_delete_partitions(table, partitions, dry_run=false, options=none) %}
  {% do hudi__run('delete_partitions', {'table': table, 'partitions': partitions, 'dry_run': dry_run, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_repair(table, kinds=none, dry_run=true, partitions=none, options=none) %}
  {% do hudi__run('repair', {'table': table, 'kinds': kinds, 'dry_run': dry_run, 'partitions': partitions, 'options': options}, kwargs) %}
{% endmacro %}

{% macro hudi_clone(table, clone, at=none, replace=false, copy=false) %}
  {% do hudi__run('clone', {'table': table, 'clone': clone, 'at': at, 'replace': replace, 'copy': copy}, kwargs) %}
{% endmacro %}

{% macro hudi_adopt(table, location=none) %}
  {% do hudi__run('adopt', {'table': table, 'location': location}, kwargs) %}
{% endmacro %}

{% macro hudi_soft_delete(table, where) %}
  {% do hudi__run('soft_delete', {'table': table, 'where': where}, kwargs) %}
{% endmacro %}

{#- Apache Hudi's procedures: dbt run-operation hudi_call --args '{procedure: show_commits, table: orders, limit: 5}'. -#}
{% macro hudi_call(procedure, table) %}
  {% if execute %}
    {% for line in adapter.hudi_call(procedure, dict(kwargs, table=table)) %}
      {% do log(line, info=true) %}
    {% endfor %}
  {% endif %}
{% endmacro %}

{#- Run an operation and print what it answers; while dbt parses only the arguments are checked. -#}
{% macro hudi__run(name, given, others) %}
  {% for line in adapter.hudi_operation(name, given, others) %}
    {% do log(line, info=true) %}
  {% endfor %}
{% endmacro %}
