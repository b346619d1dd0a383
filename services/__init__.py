"""Servers and processes that Homer starts, and whether they are well."""
