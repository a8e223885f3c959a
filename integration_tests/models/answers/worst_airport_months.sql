{{ config(materialized='view') }}
select airport, month, avg_dep_delay, flights, avg_visibility_miles, precipitation_inches
from {{ ref('airport_months') }}
order by avg_dep_delay desc
limit 3
