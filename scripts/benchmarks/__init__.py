"""Measures dask_bpe beside its peers: `scripts/bench`.

__main__      one job after the other; what is found is kept and printed as it comes
options       the command line
texts         prefixes of the texts given, longer ones chained from them, pathological ones
vocabularies  a vocabulary file, as every library loads it
contest       contestants in fresh processes take turns; results are compared before they are timed
process       such a process; `work` is what it gets and gives
jobs/         a file for each thing that is measured: its contestants, its table, the bars it has to reach
yardsticks    how fast the machine reads bytes at all
figures       what was measured, as JSON keeps it
report, bars, plot, machine     what is made of it
patterns      another program: every split pattern beside the others (`scripts/bench --patterns`)
"""
