{#- dbt-spark's own asserts nothing (nvl2 of a null never reaches the assertion) and says the call three times, nested nine times:
    a datediff of some hundred lines for Spark to plan, and a view too long for a metastore in Derby. -#}
{% macro hudi__assert_not_null(function, arg) %}
    {{- function }}({{ arg }})
{%- endmacro %}

{#- dbt-spark's own goes by whole seconds, and what a moment has below them is lost. Days and longer are those of the calendar. -#}
{% macro hudi__dateadd(datepart, interval, from_date_or_timestamp) %}
    {%- set microseconds = {'hour': 3600000000, 'minute': 60000000, 'second': 1000000, 'millisecond': 1000, 'microsecond': 1} -%}
    {%- set moment = 'cast(' ~ from_date_or_timestamp ~ ' as timestamp)' -%}
    {%- if datepart | lower in ['day', 'week', 'month', 'quarter', 'year'] -%}
        timestampadd({{ datepart }}, cast({{ interval }} as int), {{ moment }})
    {%- elif datepart | lower in microseconds -%}
        ({{ moment }} + cast(({{ interval }}) * {{ microseconds[datepart | lower] }} as bigint) * interval '0.000001' second)
    {%- else -%}
        {{ exceptions.raise_compiler_error(
            "dateadd knows no datepart '" ~ datepart ~ "'; legal are day, week, month, quarter, year, " ~ microseconds | join(', ')
        ) }}
    {%- endif -%}
{%- endmacro %}
