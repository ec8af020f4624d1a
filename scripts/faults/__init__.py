"""Real faults in real processes: `scripts/chaos`.

__main__    one fault after the other, as long as asked; the table; whether all was well
corpus      text whose documents are known by what they hold
job         a `dask-bpe` command in a process of its own, its workers, and moments of its work
trial       an encoding, or a training, that is broken, gone on with, and compared with one that never was
killing     processes that die: workers, all workers, the driver; Ctrl-C
storage     a full disk, a folder that cannot be written to, sources that change or cannot be read
sharing     two jobs in one folder; tasks that go on when their driver has died; memory that runs out
trouble     the file system of a source that makes trouble, as the workers load it
cluster     a cluster that outlives the drivers that work on it
"""
