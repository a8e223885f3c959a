{{ config(unique_key="tailnum") }}
select * from {{ landed('planes') }}
