"""The shared part of HTA's modules: traces as frames, symbols, filters, call stacks, timelines."""
