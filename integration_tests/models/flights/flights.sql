-- upsert: one row a flight. A late correction replaces the first report; an older report that comes late changes nothing.
{{ config(
    incremental_strategy='upsert',
    unique_key=['month', 'day', 'carrier', 'flight', 'origin'],
    tblproperties={'preCombineField': 'recorded_at'},
    partition_by=['month']
) }}
select * from {{ ref('stg_flight_reports') }}
{% if is_incremental() %}
where arrival > (select max(arrival) from {{ this }})
{% endif %}
