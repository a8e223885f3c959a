-- bulk_insert: every report as it came, the ones that repeat a flight too. No key, so each row gets an automatic one.
{{ config(
    incremental_strategy='bulk_insert',
    partition_by=['arrival']
) }}
select * from {{ ref('stg_flight_reports') }}
{% if is_incremental() %}
where arrival > (select max(arrival) from {{ this }})
{% endif %}
