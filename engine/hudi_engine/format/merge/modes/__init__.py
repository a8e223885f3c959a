"""How two records with the same key become one; one module for each way, found through ``registry``."""
