select w.*
from {{ ref('awaiting_figures') }} w
join {{ ref('flights') }} f
  on f.month = w.month and f.day = w.day and f.carrier = w.carrier and f.flight = w.flight and f.origin = w.origin
where f.final_figures
