"""What HTA's modules share: traces as frames, symbols, filters, call stacks, timelines."""
