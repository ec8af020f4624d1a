"""A vocabulary file, as every library loads it. A folder with GPT-2's files, or a file of tiktoken's ranks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.texts import SEPARATOR


@dataclass(frozen=True)
class VocabularyFile:
    """Where a vocabulary is.

    Attributes
    ----------
    path : a folder with vocab.json, merges.txt and tokenizer.json; or tiktoken's ranks, under the name that OpenAI gave
        them: gigatoken and tiktoken know by it what the file leaves out, the pattern and the special tokens.
    tokenizer_json : the same for HF tokenizers; of ranks, what dask_bpe makes of them.
    dtype : in which ids are written.
    """

    path: str
    tokenizer_json: str
    dtype: str

    @classmethod
    def at(cls, path: Path, folder: Path) -> VocabularyFile:
        """The vocabulary at a path; what has to be made for it will be in the folder."""
        if path.is_dir():
            return cls(str(path), str(path / "tokenizer.json"), "uint16")
        return cls(str(path), str(folder / f"{path.stem}.json"), "uint32")

    @property
    def name(self) -> str:
        """What to call it."""
        return Path(self.path).name.removesuffix(".tiktoken")

    @property
    def is_ranks(self) -> bool:
        """Whether it is a file of ranks."""
        return Path(self.path).is_file()

    def _of_folder(self, name: str) -> str:
        return str(Path(self.path) / name)

    def dask_bpe(self) -> Any:
        """A `dask_bpe.Tokenizer`."""
        from dask_bpe import Tokenizer

        if self.is_ranks:
            return Tokenizer.from_tiktoken(self.path)
        return Tokenizer.from_gpt2(self._of_folder("vocab.json"), self._of_folder("merges.txt"))

    def gigatoken(self) -> Any:
        """A `gigatoken.Tokenizer`."""
        import gigatoken

        return gigatoken.Tokenizer.from_tiktoken(self.path) if self.is_ranks else gigatoken.Tokenizer(self.path)

    def tiktoken(self) -> Any:
        """A `tiktoken.Encoding`."""
        import tiktoken
        from tiktoken.load import data_gym_to_mergeable_bpe_ranks, load_tiktoken_bpe
        from tiktoken_ext import openai_public

        os.environ["TIKTOKEN_CACHE_DIR"] = ""  # it would keep a copy by name, for ever
        if self.is_ranks:
            ranks = load_tiktoken_bpe(self.path)
            # What makes the encoding of this name takes our ranks, and does not download them.
            openai_public.load_tiktoken_bpe = lambda *_, **__: ranks
            return tiktoken.Encoding(**openai_public.ENCODING_CONSTRUCTORS[self.name]())
        ranks = data_gym_to_mergeable_bpe_ranks(self._of_folder("merges.txt"), self._of_folder("vocab.json"))
        return tiktoken.Encoding(
            "gpt2",
            pat_str=openai_public.r50k_pat_str,
            mergeable_ranks=ranks,
            special_tokens={SEPARATOR: len(ranks)},
        )

    def tokenizers(self) -> Any:
        """A `tokenizers.Tokenizer`."""
        from tokenizers import Tokenizer

        if not Path(self.tokenizer_json).exists():
            self.dask_bpe().to_huggingface(self.tokenizer_json)
        return Tokenizer.from_file(self.tokenizer_json)
