"""What is thought of a turn afterwards, and what its models cost: rows beside the archive, on any of the databases."""
