-- insert_overwrite: the months of the flights that changed since the last run are computed again and replace their
-- partitions, others stay. Both sides of a change count: the month a row was in, and the one it is in.
{{ config(
    incremental_strategy='insert_overwrite',
    partition_by=['month']
) }}
with changed as (
  select distinct month from {{ hudi_changes(ref('flights'), mode='all') }}
)

select
  origin,
  flight_date,
  count(*) as flights,
  count(arr_delay) as arrived,
  round(avg(dep_delay), 2) as avg_dep_delay,
  round(avg(arr_delay), 2) as avg_arr_delay,
  month
from {{ ref('flights') }}
where month in (select month from changed)
group by origin, flight_date, month
