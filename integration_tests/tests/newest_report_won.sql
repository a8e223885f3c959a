-- No flight may show an older report than the newest one that arrived for it.
with newest as (
  select flight_date, carrier, flight, origin, max(recorded_at) as recorded_at
  from {{ ref('flight_reports') }}
  group by flight_date, carrier, flight, origin
)

select f.*
from {{ ref('flights') }} f
join newest n
  on n.flight_date = f.flight_date and n.carrier = f.carrier and n.flight = f.flight and n.origin = f.origin
where f.recorded_at <> n.recorded_at
