"""The layouts in which trainers keep token ids: one writer each, behind one protocol, a file per layout."""

from __future__ import annotations

from dask_bpe.io.layouts.datatrove import DatatroveWriter
from dask_bpe.io.layouts.dolma import DolmaWriter
from dask_bpe.io.layouts.litdata import LitdataWriter
from dask_bpe.io.layouts.llmc import LlmcWriter
from dask_bpe.io.layouts.mds import MdsWriter
from dask_bpe.io.layouts.megatron import MegatronWriter
from dask_bpe.io.layouts.nanogpt import NanogptWriter
from dask_bpe.io.layouts.native import BinWriter, ParquetWriter
from dask_bpe.io.layouts.writer import LayoutWriter

__all__ = ["LAYOUTS", "LayoutWriter"]

LAYOUTS: dict[str, type[LayoutWriter]] = {
    "bin": BinWriter,
    "parquet": ParquetWriter,
    "nanogpt": NanogptWriter,
    "llmc": LlmcWriter,
    "megatron": MegatronWriter,
    "dolma": DolmaWriter,
    "datatrove": DatatroveWriter,
    "mds": MdsWriter,
    "litdata": LitdataWriter,
}
