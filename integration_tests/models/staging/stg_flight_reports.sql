-- One row a report: a flight is reported at the end of its month and again when late figures come in.
select
  arrival,
  recorded_at,
  make_date(year, month, day) as flight_date,
  year,
  month,
  day,
  carrier,
  flight,
  origin,
  dest,
  tailnum,
  sched_dep_time,
  dep_time,
  dep_delay,
  sched_arr_time,
  arr_time,
  arr_delay,
  air_time,
  distance,
  time_hour,
  final_figures
from {{ landed('flights') }}
