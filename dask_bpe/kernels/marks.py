"""What the kernel of the tables, `transduce`, and those who make its tables have to agree on; nothing is compiled."""

from __future__ import annotations

# What `scan_table` returns when a block needs more room than its buffers have.
ENLARGE = -1
# What the kernels that cut and encode return where the pattern leaves text unmatched.
UNMATCHED = -2
# Room that the marks have beyond a block.
PADDING = 128
# No next state.
DEAD = 0x3FFF
# Marks of a byte: a piece begins there; it is dropped; because the pattern leaves it unmatched; the automata have to
# cut the text around it.
BEGINS, DROPPED, REFUSES, AGAIN = 1, 32, 64, 128
