(select * from {{ ref('flights') }} except select * from {{ ref('flights_live') }})
union all
(select * from {{ ref('flights_live') }} except select * from {{ ref('flights') }})
