"""Alerts: judging each remembered clip, and delivering the events."""
