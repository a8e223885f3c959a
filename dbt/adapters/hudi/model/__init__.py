"""What a model asks for, resolved once into frozen values before anything runs."""
