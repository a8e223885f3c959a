{#- dbt-spark's own goes by whole seconds, and what a moment has below them is lost. Days and longer are those of the calendar; hours and
    shorter have passed, whatever the clock was set to meanwhile, which an interval of Spark from a day on does not keep. -#}
{% macro hudi__dateadd(datepart, interval, from_date_or_timestamp) %}
    {%- set microseconds = {'hour': 3600000000, 'minute': 60000000, 'second': 1000000, 'millisecond': 1000, 'microsecond': 1} -%}
    {%- set moment = 'cast(' ~ from_date_or_timestamp ~ ' as timestamp)' -%}
    {%- if datepart | lower in ['day', 'week', 'month', 'quarter', 'year'] -%}
        timestampadd({{ datepart }}, cast({{ interval }} as int), {{ moment }})
    {%- elif datepart | lower in microseconds -%}
        timestamp_micros(unix_micros({{ moment }}) + cast(({{ interval }}) * {{ microseconds[datepart | lower] }}L as bigint))
    {%- else -%}
        {{ exceptions.raise_compiler_error(
            "dateadd knows no datepart '" ~ datepart ~ "'; legal values: day, week, month, quarter, year, " ~ microseconds | join(', ')
        ) }}
    {%- endif -%}
{%- endmacro %}

{#- How many of the parts begin between two moments, as in other warehouses; dbt-spark's own counts started minutes and hours, and
    reads microseconds from a text that has fewer digits where they are zeros. Weeks begin on Sunday. -#}
{% macro hudi__datediff(first_date, second_date, datepart) %}
    {%- set part = datepart | lower -%}
    {%- set first, second = 'cast(' ~ first_date ~ ' as timestamp)', 'cast(' ~ second_date ~ ' as timestamp)' -%}
    {%- set seconds = {'hour': 3600, 'minute': 60, 'second': 1} -%}
    {%- set micros = {'millisecond': 1000, 'microsecond': 1} -%}
    {%- set months = {'month': 1, 'quarter': 3, 'year': 12} -%}
    {%- if part == 'day' -%}
        datediff({{ second }}, {{ first }})
    {%- elif part == 'week' -%}
        cast(datediff(date_trunc('week', {{ second }} + interval '1' day), date_trunc('week', {{ first }} + interval '1' day)) / 7 as int)
    {%- elif part in months -%}
        cast(months_between(date_trunc('{{ part }}', {{ second }}), date_trunc('{{ part }}', {{ first }})) / {{ months[part] }} as int)
    {%- elif part in seconds -%}
        ((unix_seconds(date_trunc('{{ part }}', {{ second }})) - unix_seconds(date_trunc('{{ part }}', {{ first }}))) div {{ seconds[part] }})
    {%- elif part in micros -%}
        ((unix_micros(date_trunc('{{ part }}', {{ second }})) - unix_micros(date_trunc('{{ part }}', {{ first }}))) div {{ micros[part] }})
    {%- else -%}
        {{ exceptions.raise_compiler_error(
            "datediff knows no datepart '" ~ datepart ~ "'; legal values: day, week, month, quarter, year, hour, minute, second, millisecond, "
            "microsecond"
        ) }}
    {%- endif -%}
{%- endmacro %}
