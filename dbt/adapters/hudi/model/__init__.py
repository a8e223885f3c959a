"""A model's config, resolved once into frozen values before anything runs."""
