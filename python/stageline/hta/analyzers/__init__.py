"""HTA's analyzers that scripts import by name."""
