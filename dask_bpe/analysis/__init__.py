"""Questions about vocabularies and corpora, answered with figures: no Dask, no files but vocabularies."""
