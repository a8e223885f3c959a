select flight_date, carrier, flight, origin, count(*) as copies
from {{ ref('flights') }}
group by flight_date, carrier, flight, origin
having count(*) > 1
