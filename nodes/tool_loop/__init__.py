"""The steps of the tool loop; the others are those of the HOMER machine."""
