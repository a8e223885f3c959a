select origin, year, month, day, hour, temp, wind_speed, precip, visib
from {{ landed('weather') }}
