-- delete: flights whose arrival has not been reported. A normal run adds them; a run with `settle: true` deletes those
-- that have been reported since.
{{ config(
    incremental_strategy='delete' if var('settle', false) else 'upsert',
    unique_key=['month', 'day', 'carrier', 'flight', 'origin']
) }}
{% if var('settle', false) %}
select month, day, carrier, flight, origin
from {{ ref('flights') }}
where final_figures
{% else %}
select month, day, carrier, flight, origin, dest, recorded_at
from {{ ref('flights') }}
where not final_figures
{% endif %}
