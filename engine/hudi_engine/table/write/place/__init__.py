"""Which file each row of a partition goes to, and writing it."""
