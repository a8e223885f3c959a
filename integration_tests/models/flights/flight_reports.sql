-- bulk_insert: every report as it came, the ones that repeat a flight too. No key, so each row gets an automatic one. The rows
-- of each arrival are ordered by carrier and flight, so a query for one of them skips most of a file.
{{ config(
    incremental_strategy='bulk_insert',
    partition_by=['arrival'],
    cluster_by=['carrier', 'flight']
) }}
select * from {{ ref('stg_flight_reports') }}
{% if is_incremental() %}
where arrival > (select max(arrival) from {{ this }})
{% endif %}
