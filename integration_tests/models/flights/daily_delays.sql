-- depends_on: {{ ref("stg_flight_reports") }}
-- insert_overwrite: the months that a new file touches are computed again and replace their partitions, others stay.
{{ config(
    incremental_strategy='insert_overwrite',
    partition_by=['month']
) }}
select
  origin,
  flight_date,
  count(*) as flights,
  count(arr_delay) as arrived,
  round(avg(dep_delay), 2) as avg_dep_delay,
  round(avg(arr_delay), 2) as avg_arr_delay,
  max(arrival) as last_arrival,
  month
from {{ ref('flights') }}
{% if is_incremental() %}
where month in (
  select distinct month from {{ ref('stg_flight_reports') }}
  where arrival > (select max(last_arrival) from {{ this }})
)
{% endif %}
group by origin, flight_date, month
