"""Defines which arguments of events become columns, and HTA's own settings."""
