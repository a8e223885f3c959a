-- merge-on-read: the same flights, written as logs beside the base files and compacted after each run.
{{ config(
    table_type='mor',
    unique_key=['month', 'day', 'carrier', 'flight', 'origin'],
    tblproperties={'preCombineField': 'recorded_at'},
    partition_by=['month'],
    post_hook=["{{ hudi_compact(this) }}", "{{ hudi_clean(this) }}"]
) }}
select * from {{ ref('stg_flight_reports') }}
{% if is_incremental() %}
where arrival > (select max(arrival) from {{ this }})
{% endif %}
