-- Every airport and month with its delays and its weather.
{{ config(partition_by=['origin']) }}
with delays as (
  select
    origin,
    month,
    sum(flights) as flights,
    round(sum(avg_dep_delay * flights) / sum(flights), 1) as avg_dep_delay
  from {{ ref('daily_delays') }}
  group by origin, month
),

weather as (
  select
    origin,
    month,
    round(avg(visib), 1) as avg_visibility_miles,
    round(sum(precip), 1) as precipitation_inches
  from {{ ref('stg_weather') }}
  group by origin, month
)

select d.month, p.name as airport, d.flights, d.avg_dep_delay, w.avg_visibility_miles, w.precipitation_inches, d.origin
from delays d
join {{ ref('airports') }} p on p.faa = d.origin
left join weather w on w.origin = d.origin and w.month = d.month
