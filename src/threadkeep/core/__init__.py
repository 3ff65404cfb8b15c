"""What the verbs of `Memory` are made of, between the ports and the surfaces."""
