"""Files: text that comes in, token shards that go out. The only package that imports pyarrow or fsspec."""
