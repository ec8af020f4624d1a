"""Counting, training and encoding as Dask graphs: on the threads of this process or on a cluster.

The only place that knows Dask. Its files build bags and call the layers below; none loops over bytes.
"""
