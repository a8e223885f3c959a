{#- Spark has no transactions: both kinds of hooks run, in order, and no "commit" is sent. An error names the hook. -#}
{% macro run_hooks(hooks, inside_transaction=True) %}
  {% set when = 'pre-hook' if hooks is sameas pre_hooks else 'post-hook' %}
  {% for hook in hooks %}
    {% if hook.transaction == inside_transaction %}
      {% do adapter.hudi_in_hook(when, loop.index, hooks | length) %}
      {% set rendered = render(hook.get('sql')) | trim %}
      {% if rendered | length > 0 %}
        {% call statement(auto_begin=inside_transaction) %}
          {{ rendered }}
        {% endcall %}
      {% endif %}
      {% do adapter.hudi_in_hook() %}
    {% endif %}
  {% endfor %}
{% endmacro %}
