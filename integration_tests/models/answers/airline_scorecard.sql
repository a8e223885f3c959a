-- Which airline makes up most of its departure delay in the air?
select
  a.name as airline,
  count(*) as flights,
  round(avg(f.dep_delay), 1) as avg_minutes_late_at_departure,
  round(avg(f.arr_delay), 1) as avg_minutes_late_at_arrival,
  round(avg(f.dep_delay - f.arr_delay), 1) as avg_minutes_made_up
from {{ ref('flights') }} f
join {{ ref('airlines') }} a on a.carrier = f.carrier
where f.arr_delay is not null
group by a.name
