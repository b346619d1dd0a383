"""Who decides inside the machine: a language model, or rules. Both stand behind one port."""
