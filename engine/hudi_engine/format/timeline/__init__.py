"""What happened to a table and when: instants, their states, and what each commit wrote."""
