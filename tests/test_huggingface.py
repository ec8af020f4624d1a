"""tokenizer.json: read as `tokenizers` reads it, written so that it reads the same, refused where neither is sure."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import regex
import tokenizers
from huggingface_files import (
    CORPUS,
    SAMPLES,
    added,
    byte_level,
    content,
    known,
    loaded,
    sequence,
    split,
    texts,
    trained,
)
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples
from tokenizers import pre_tokenizers

from dask_bpe import Tokenizer, Vocabulary
from dask_bpe.errors import VocabularyError
from dask_bpe.interchange.gpt2 import CHARACTER_OF_BYTE
from dask_bpe.interchange.huggingface_write import to_json
from dask_bpe.interchange.punctuation import PUNCTUATION
from dask_bpe.pretokenize import PATTERNS, Split

CL100K_OF_HF = PATTERNS["llama3"][0].regex
BYTES = {character: byte for byte, character in CHARACTER_OF_BYTE.items()}
END, PAD = "<|end|>", "<pad>"


def normalizers(*steps: Any) -> dict[str, Any]:
    return sequence(*steps, members="normalizers")


def template(single: list[Any], **ids: int) -> dict[str, Any]:
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {text: {"id": text, "ids": [index], "tokens": [text]} for text, index in ids.items()},
    }


A = {"Sequence": {"id": "A", "type_id": 0}}
BEGIN = {"SpecialToken": {"id": "<s>", "type_id": 0}}
STOP = {"SpecialToken": {"id": "</s>", "type_id": 0}}

PRE_TOKENIZERS = {
    "gpt2": byte_level(regex=True),
    "none": byte_level(),
    "prefix space": byte_level(prefix=True, regex=True),
    "prefix space, whole": byte_level(prefix=True),
    "in a sequence": sequence(sequence(byte_level(regex=True))),
    **{
        name: sequence(*(split(step.regex) for step in splits), byte_level())
        for name, splits in PATTERNS.items()
        if name not in ("none", "cl100k")
    },
    "starcoder": sequence({"type": "Digits", "individual_digits": True}, byte_level(regex=True)),
    "digits together": sequence({"type": "Digits", "individual_digits": False}, byte_level()),
    "text": sequence(split(" the", kind="String"), split(".", kind="String"), byte_level(regex=True)),
    "removed": sequence(split(r"\s", "Removed"), byte_level()),
    "kept alone": sequence(split(r"\p{L}+|\s", "Removed", invert=True), byte_level()),
    "with previous": sequence(split(r"\s+", "MergedWithPrevious"), byte_level()),
    "with next": sequence(split(r"[\s']", "MergedWithNext"), byte_level(regex=True)),
    "with next, inverted": sequence(split(r"\s+", "MergedWithNext", invert=True), byte_level()),
    "contiguous": sequence(split(r"\p{Lu}|\d", "Contiguous"), byte_level()),
    "isolated, inverted": sequence(split(r"\p{L}+", invert=True), byte_level()),
    "white space": sequence({"type": "WhitespaceSplit"}, byte_level()),
    "words": sequence({"type": "Whitespace"}, byte_level()),
    "punctuation mark": sequence({"type": "Punctuation", "behavior": "Isolated"}, byte_level()),
    "punctuation marks": sequence({"type": "Punctuation", "behavior": "Contiguous"}, byte_level(regex=True)),
    "delimiter": sequence({"type": "CharDelimiterSplit", "delimiter": "-"}, byte_level()),
}
NORMALIZERS = {
    "NFC": {"type": "NFC"},
    "NFD": {"type": "NFD"},
    "NFKC": {"type": "NFKC"},
    "NFKD": {"type": "NFKD"},
    "Lowercase": {"type": "Lowercase"},
    "Prepend": {"type": "Prepend", "prepend": "▁"},
    "Replace": {"type": "Replace", "pattern": {"String": "aa"}, "content": "b c"},
    "Replace a Regex that is none": {"type": "Replace", "pattern": {"Regex": " "}, "content": "▁"},
    "Sequence": normalizers({"type": "NFKC"}, {"type": "Lowercase"}, {"type": "Prepend", "prepend": " "}),
}


def assert_same(file: dict[str, Any], text: str, **arguments: Any) -> None:
    ours, theirs = Tokenizer.from_huggingface(file), loaded(file)
    assert ours.encode(text) == theirs.encode(text, add_special_tokens=False).ids


def assert_exported(ours: Tokenizer, text: str) -> None:
    """What is written for the library gives the same ids there, and here when it is read again."""
    file = to_json(ours.vocabulary)
    assert loaded(file).encode(text, add_special_tokens=False).ids == ours.encode(text)
    assert Tokenizer.from_huggingface(file).encode(text) == ours.encode(text)


class TestReading:
    @pytest.mark.parametrize("name", PRE_TOKENIZERS)
    def test_pre_tokenizers(self, name: str) -> None:
        file = trained(PRE_TOKENIZERS[name])
        ours, theirs = Tokenizer.from_huggingface(file), loaded(file)
        written = loaded(to_json(ours.vocabulary))

        @examples(0.4)
        @given(texts())
        def check(text: str) -> None:
            expected = theirs.encode(text).ids
            assert ours.encode(text) == expected
            assert written.encode(text).ids == expected

        check()
        assert ours.encode_batch(SAMPLES) == [theirs.encode(text).ids for text in SAMPLES]
        assert [written.encode(text).ids for text in SAMPLES] == ours.encode_batch(SAMPLES)
        again = Tokenizer.from_huggingface(to_json(ours.vocabulary))
        assert again == ours

    @pytest.mark.parametrize(
        ("pre_tokenizer", "pattern"),
        [
            (PRE_TOKENIZERS["gpt2"], "gpt2"),
            (PRE_TOKENIZERS["none"], None),
            (PRE_TOKENIZERS["starcoder"], "starcoder"),
            (PRE_TOKENIZERS["deepseek"], "deepseek"),
            (PRE_TOKENIZERS["o200k"], "o200k"),
            (sequence(split(PATTERNS["gpt2"][0].regex), byte_level()), "gpt2"),
            (sequence(split(PATTERNS["cl100k"][0].regex.replace("{1,3}+", "{1,3}")), byte_level()), "cl100k"),
            (sequence(split(r"\s+"), byte_level()), (Split(r"\s+"),)),
        ],
    )
    def test_known_patterns_have_their_names(self, pre_tokenizer: dict[str, Any], pattern: Any) -> None:
        assert Tokenizer.from_huggingface(trained(pre_tokenizer)).pattern == pattern

    @pytest.mark.parametrize("name", NORMALIZERS)
    def test_normalizers(self, name: str) -> None:
        tokens = [added("<s>", 420), added("|||", 421, special=False)]
        file = trained(normalizer=NORMALIZERS[name], added_tokens=tokens)
        ours, theirs = Tokenizer.from_huggingface(file), loaded(file)
        written = loaded(to_json(ours.vocabulary))

        @examples(0.4)
        @given(texts("<s>", "|||", "a\u0301", "ﬁ", "가", "Ａ", "Σ", "İ"))
        def check(text: str) -> None:
            expected = theirs.encode(text).ids
            assert ours.encode(text) == expected
            assert written.encode(text).ids == expected

        check()

    def test_added_tokens(self) -> None:
        tokens = [
            added("<s>", 420),
            added("<s>x", 421, "normalized"),
            added("<l>", 422, "lstrip"),
            added("<r>", 423, "rstrip", "normalized", special=False),
            added("<b>", 424, "lstrip", "rstrip", special=False),
            added("new", 425, "single_word", special=False),
            added("word", 426, "single_word", "lstrip", "normalized"),
            added("自君", 427, special=False),
            added("é", 428) | {"content": "ñandú"},
        ]
        file = trained(added_tokens=tokens)
        ours, theirs = Tokenizer.from_huggingface(file), loaded(file)
        written = loaded(to_json(ours.vocabulary))
        pieces = [token["content"] for token in tokens]

        @given(st.lists(st.one_of(st.sampled_from([*pieces, " ", "\n", "x", "new<r>", "\u00a0"]), texts()), max_size=8))
        def check(parts: list[str]) -> None:
            text = "".join(parts)
            expected = theirs.encode(text).ids
            assert ours.encode(text) == expected
            assert written.encode(text).ids == expected

        check()
        assert ours.vocabulary.added_rules["<r>"] == {"rstrip", "normalized", "ordinary"}
        assert "<s>" not in ours.vocabulary.added_rules
        assert json.loads(written.to_str())["added_tokens"] == json.loads(theirs.to_str())["added_tokens"]

    def test_added_tokens_in_the_model(self) -> None:
        vocab = (
            {"<|end|>": 0, "<pad>": 1}
            | {text: index + 2 for text, index in BYTES.items()}
            | {"ab": 300, "<｜x｜>": 302}
        )
        file = content(vocab, ["a b"], added_tokens=[added("<|end|>", 0), added("<｜x｜>", 302), added("ab", 300)])
        ours = Tokenizer.from_huggingface(file)
        assert ours.special_tokens == {"<|end|>": 0, "<｜x｜>": 302, "ab": 300}
        assert (len(ours), ours.vocabulary.tokens[299]) == (303, b"")
        for text in ("<|end|>a<｜x｜>b<pad>abc", "a b"):
            assert_same(file, text)
            assert_exported(ours, text)
        assert Tokenizer.from_huggingface(to_json(ours.vocabulary)).vocabulary.special_tokens == {
            "<|end|>": 0, "ab": 300, "<｜x｜>": 302,
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("post_processor", "expected"),
        [
            (template([BEGIN, A], **{"<s>": 420}), ((420,), ())),
            (template([BEGIN, BEGIN, A, STOP], **{"<s>": 420, "</s>": 421}), ((420, 420), (421,))),
            (sequence(byte_level(), template([BEGIN, A], **{"<s>": 420}), members="processors"), ((420,), ())),
            ({"type": "BertProcessing", "sep": ["</s>", 421], "cls": ["<s>", 420]}, ((420,), (421,))),
            (
                {"type": "RobertaProcessing", "sep": ["</s>", 421], "cls": ["<s>", 420]}
                | {"trim_offsets": True, "add_prefix_space": False},
                ((420,), (421,)),
            ),
            (byte_level(), ((), ())),
        ],
    )
    def test_templates(self, post_processor: dict[str, Any], expected: Any) -> None:
        tokens = [added("<s>", 420), added("</s>", 421)]
        file = trained(post_processor=post_processor, added_tokens=tokens)
        vocabulary = Tokenizer.from_huggingface(file).vocabulary
        assert vocabulary.template == expected
        before, after = expected
        for theirs in (loaded(file), loaded(to_json(vocabulary))):
            middle = theirs.encode("lower it", add_special_tokens=False).ids
            assert theirs.encode("lower it").ids == [*before, *middle, *after]

    def test_merges_as_strings_and_as_pairs_the_last_of_equal_ones(self) -> None:
        vocab = BYTES | {"ab": 256, "bc": 257, "abc": 258}
        merges = ["a b", "b c", "a b", "ab c"]
        for given_merges in (merges, [merge.split() for merge in merges], ["#version: 0.2", *merges]):
            file = content(vocab, given_merges)
            for text in ("abc", "ab bc abcabc"):
                assert_same(file, text)
        assert Tokenizer.from_huggingface(content(vocab, merges)).encode("abc") == [BYTES["a"], 257]

    @examples(1)
    @given(st.lists(st.text("ab ", min_size=2, max_size=5), unique=True, max_size=12), st.data())
    def test_ignored_merges(self, words: list[str], data: st.DataObject) -> None:
        vocab = BYTES | {word.replace(" ", "Ġ"): 256 + index for index, word in enumerate(words)}
        ways = [f"{text[:at]} {text[at:]}" for text in vocab for at in range(1, len(text))]
        merges = [way for way in ways if all(part in vocab for part in way.split())]
        shuffled = data.draw(st.permutations(merges))
        for whole in (True, False):
            file = content(vocab, shuffled, model={"ignore_merges": whole}, pre_tokenizer=byte_level())
            text = data.draw(st.text("ab ", max_size=12))
            assert_same(file, text)
            assert_exported(Tokenizer.from_huggingface(file), text)

    def test_every_kind_of_source(self, tmp_path: Path) -> None:
        file = trained()
        text = json.dumps(file)
        (tmp_path / "tokenizer.json").write_text(text, encoding="utf-8")
        tokenizer = Tokenizer.from_huggingface(file)

        class Fast:
            backend_tokenizer = loaded(file)

        Fast.backend_tokenizer.enable_truncation(5)
        path = tmp_path / "tokenizer.json"
        for source in (tmp_path, str(tmp_path), path, str(path), text, loaded(file), Fast()):
            assert Tokenizer.from_huggingface(source) == tokenizer
        assert len(tokenizer.encode(CORPUS[0])) > 5

    def test_fields_that_say_nothing_where_every_byte_has_a_token(self) -> None:
        quiet = {"unk_token": "!", "byte_fallback": True, "fuse_unk": True, "continuing_subword_prefix": ""}
        file = trained(model={**quiet, "end_of_word_suffix": "", "dropout": 0.0})
        for text in SAMPLES:
            assert_same(file, text)

    @pytest.mark.peers
    @pytest.mark.parametrize("name", ["gpt2", "llama3", "qwen3", "deepseek_v3"])
    def test_published_files(self, name: str, tmp_path: Path) -> None:
        folder = Path(os.environ.get("DASK_BPE_VOCABS", "")) / name
        if not (folder / "tokenizer.json").is_file():
            pytest.skip("DASK_BPE_VOCABS names no folder with it")
        ours = Tokenizer.from_huggingface(folder)
        ours.to_huggingface(tmp_path / "out")
        specials = list(ours.special_tokens)
        theirs = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        written = tokenizers.Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json"))

        @given(texts(*specials[:20], *specials[-20:]))
        def check(text: str) -> None:
            expected = theirs.encode(text, add_special_tokens=False).ids
            assert ours.encode(text) == expected
            assert written.encode(text, add_special_tokens=False).ids == expected

        check()


@pytest.mark.peers
def test_transformers_opens_what_is_written(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = Tokenizer.from_huggingface(trained(added_tokens=[added("<|endoftext|>", 420)]))
    tokenizer.to_huggingface(tmp_path / "out")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    for text in (*SAMPLES, "a<|endoftext|>b"):
        ids = tokenizer.encode(text)
        assert theirs.encode(text, add_special_tokens=False) == ids
        assert theirs.decode(ids, clean_up_tokenization_spaces=False) == text
    assert Tokenizer.from_huggingface(theirs) == tokenizer


def test_punctuation_is_that_of_the_library() -> None:
    # There is none beyond these planes.
    every = [chr(code) for code in (*range(0xD800), *range(0xE001, 0x20000), *range(0xE0000, 0xE1000))]
    found = set()
    for start in range(0, len(every), 1 << 16):
        text = "\ue000".join(every[start : start + (1 << 16)])
        pieces = pre_tokenizers.Punctuation("isolated").pre_tokenize_str(text)
        found |= {piece for piece, (at, end) in pieces if end - at == 1 and at % 2 == 0}
    assert found == set(regex.findall(PUNCTUATION, "".join(every)))


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "not BPE": ({"model": {"type": "WordPiece"}}, "model cannot be taken over exactly: it is of type 'WordPiece'"),
    "dropout": ({"model": {"dropout": 0.1}}, "model.dropout cannot"),
    "prefix": ({"model": {"continuing_subword_prefix": "##"}}, "model.continuing_subword_prefix cannot"),
    "suffix": ({"model": {"end_of_word_suffix": "</w>"}}, "model.end_of_word_suffix cannot"),
    "a new field of the model": ({"model": {"backtrack": True}}, "model.backtrack cannot"),
    "a new part": ({"sampler": {"type": "Beam"}}, "sampler cannot"),
    "truncation": ({"truncation": {"max_length": 5}}, "truncation cannot"),
    "padding": ({"padding": {"strategy": "BatchLongest"}}, "padding cannot"),
    "no pre-tokenizer": ({"pre_tokenizer": None}, "pre_tokenizer null cannot"),
    "Metaspace": ({"pre_tokenizer": {"type": "Metaspace", "replacement": "▁"}}, "pre_tokenizer Metaspace cannot"),
    "Digits after ByteLevel": (
        {"pre_tokenizer": sequence(byte_level(regex=True), {"type": "Digits", "individual_digits": True})},
        "pre_tokenizer Digits cannot be taken over exactly: it comes after ByteLevel",
    ),
    "UnicodeScripts": ({"pre_tokenizer": sequence({"type": "UnicodeScripts"}, byte_level())}, "UnicodeScripts cannot"),
    "a space before every piece": (
        {"pre_tokenizer": sequence(split(" "), byte_level(prefix=True))},
        "pre_tokenizer ByteLevel cannot be taken over exactly: add_prefix_space",
    ),
    "a word class": ({"pre_tokenizer": sequence(split(r"\w+|\W"), byte_level())}, r"has \w, which Hugging Face"),
    "an anchor of lines": ({"pre_tokenizer": sequence(split(r"\s+$|a"), byte_level())}, "'$', which"),
    "a repeated repetition": ({"pre_tokenizer": sequence(split(r"\d{1,3}+"), byte_level())}, "the repetition '{1,3}+'"),
    "a behavior": ({"pre_tokenizer": sequence(split("a", "Shuffled"), byte_level())}, "its behavior 'Shuffled'"),
    "an empty split": ({"pre_tokenizer": sequence(split("", kind="String"), byte_level())}, "its pattern is empty"),
    "StripAccents": ({"normalizer": {"type": "StripAccents"}}, "normalizer StripAccents cannot"),
    "a replaced Regex": (
        {"normalizer": {"type": "Replace", "pattern": {"Regex": " +"}, "content": " "}},
        "normalizer Replace cannot",
    ),
    "a decoder": ({"decoder": {"type": "Metaspace"}}, "decoder Metaspace cannot"),
    "a post-processor": ({"post_processor": {"type": "Other"}}, "post_processor Other cannot"),
    "two templates": (
        {
            "post_processor": sequence(
                template([BEGIN, A], **{"<s>": 420}), template([BEGIN, A], **{"<s>": 420}), members="processors"
            ),
            "added_tokens": [added("<s>", 420)],
        },
        "more than once",
    ),
    "a template twice": ({"post_processor": template([A, A])}, "does not hold $A once"),
    "a template that is cut": ({"post_processor": {"type": "TemplateProcessing"}}, "is not complete"),
    "an id that is not that of the library": (
        {"added_tokens": [added("<s>", 500)]},
        "added token '<s>' cannot be taken over exactly: it has id 500 in the file, and `tokenizers` gives it 420",
    ),
    "an added token twice": ({"added_tokens": [added("<s>", 420), added("<s>", 420)]}, "'<s>' is there twice"),
    "an added token like a byte": ({"added_tokens": [added("é", 166)]}, "added token 'é' cannot"),
    "a normalized token and NFC": (
        {"added_tokens": [added("<s>", 420, "normalized")], "normalizer": {"type": "NFC"}},
        '"normalized", and the normalizer (NFC)',
    ),
    "a normalized token and Lowercase": (
        {"added_tokens": [added("new|", 420, "normalized")], "normalizer": {"type": "Lowercase"}},
        "makes upper case lower",
    ),
    "a merge of nothing": ({"model": {"merges": ["a zzz"]}}, "merge 0 joins 'a' and 'zzz', and model.vocab has no"),
    "a merge of three": ({"model": {"merges": ["a b c"]}}, "merge 0 is 'a b c', which is not two tokens"),
    "an id twice": ({"model": {"vocab": BYTES | {"ab": 5}, "merges": []}}, "model.vocab: id 5 is given to"),
    "an id that is none": ({"model": {"vocab": {"a": "b"}, "merges": []}}, "'a' has 'b', which is not an id"),
    "a byte missing": ({"model": {"vocab": {"a": 0}, "merges": []}}, "255 of the 256 single bytes have no id"),
    "no vocabulary": ({"model": {"vocab": 7}}, "model.vocab is 7"),
    "no added tokens": ({"added_tokens": [7]}, "entry 0 is 7"),
}


class TestRefusing:
    @pytest.mark.parametrize("name", REFUSED)
    def test_names_the_part_in_one_line(self, name: str) -> None:
        changes, message = REFUSED[name]
        with pytest.raises(VocabularyError) as caught:
            Tokenizer.from_huggingface(trained(**changes))
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("text", "message"),
        [("{", "not JSON"), ("[]", "a JSON object"), ("{}", 'there is no "model"'), ("\xff", "not JSON")],
    )
    def test_damaged_files(self, tmp_path: Path, text: str, message: str) -> None:
        path = tmp_path / "tokenizer.json"
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises(VocabularyError, match=message) as caught:
            Tokenizer.from_huggingface(path)
        assert str(path) in str(caught.value)
        with pytest.raises(VocabularyError, match="cannot read the file"):
            Tokenizer.from_huggingface(tmp_path / "no.json")
        with pytest.raises(VocabularyError, match="is no tokenizer"):
            Tokenizer.from_huggingface(7)

    @pytest.mark.parametrize(
        ("text", "form", "safe"),
        [
            ("||", "NFC", True),
            ("<|x|", "NFC", True),
            ("<|x|>", "NFC", False),  # joins with U+0338
            ("K|", "NFC", False),  # the Kelvin sign becomes K
            ("é|", "NFC", False),
            ("||", "NFD", True),
            ("x|", "NFD", False),
            ("1|", "NFKC", False),
            ("\u0338|", "NFC", False),
        ],
    )
    def test_normalized_tokens_that_a_normal_form_leaves_alone(self, text: str, form: str, safe: bool) -> None:
        file = trained(normalizer={"type": form}, added_tokens=[added(text, 420, "normalized")])
        if safe:
            assert_same(file, f"a{text}b {text}\u0338 e\u0301{text}")
        else:
            with pytest.raises(VocabularyError, match="normalized"):
                Tokenizer.from_huggingface(file)


class TestWriting:
    @pytest.mark.parametrize("name", PATTERNS)
    def test_every_named_pattern(self, name: str) -> None:
        base = Tokenizer.from_huggingface(trained()).vocabulary
        ours = Tokenizer(Vocabulary(base.tokens, base.merges, {}, None if name == "none" else name, "ids"))
        theirs = loaded(to_json(ours.vocabulary))

        @examples(0.6)
        @given(texts())
        def check(text: str) -> None:
            assert theirs.encode(text).ids == ours.encode(text)

        check()
        assert Tokenizer.from_huggingface(to_json(ours.vocabulary)) == ours

    @examples(1)
    @given(st.lists(st.binary(min_size=2, max_size=4), unique=True, max_size=15), texts(), st.booleans())
    def test_ranks_of_tokens(self, tokens: list[bytes], text: str, whole: bool) -> None:
        parts = [text.encode()[at : at + size] for size in (2, 3, 4) for at in range(0, len(text), 3)]
        spelled = dict.fromkeys([*(bytes([byte]) for byte in range(256)), *parts, *tokens])
        ranks = {token: index for index, token in enumerate(filter(None, spelled))}
        vocabulary = Vocabulary.from_ranks(ranks, {END: len(ranks) + 5}, pattern="gpt2", whole_tokens=whole)
        assert_exported(Tokenizer(vocabulary), text + END + text)

    def test_files_in_a_folder_or_alone(self, tmp_path: Path) -> None:
        tokenizer = Tokenizer.from_huggingface(trained())
        tokenizer.to_huggingface(tmp_path / "folder")
        tokenizer.to_huggingface(tmp_path / "alone.json")
        assert (tmp_path / "folder" / "tokenizer.json").read_bytes() == (tmp_path / "alone.json").read_bytes()
        config = json.loads((tmp_path / "folder" / "tokenizer_config.json").read_text())
        assert config["tokenizer_class"] == "PreTrainedTokenizerFast"
        assert tokenizers.Tokenizer.from_file(str(tmp_path / "alone.json")).get_vocab_size() == 420

    def test_decodes_as_we_do(self) -> None:
        tokenizer = Tokenizer.from_huggingface(trained(added_tokens=[added(END, 420)]))
        theirs = loaded(to_json(tokenizer.vocabulary))
        for text in SAMPLES:
            ids = tokenizer.encode(text + END)
            assert theirs.decode(ids, skip_special_tokens=False) == text + END

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"tokens": (b"ab",), "merges": [], "special_tokens": {"ab": 256}, "more": (b"ab",)}, "is written as"),
            ({"tokens": (b"ab", b"ab")}, "ids 256 and 257 both spell b'ab'"),
            ({"tokens": ("Ġa".encode(), b" a"), "special_tokens": {"Ġa": 256}}, "is written as the token with id 257"),
            ({"normalizer": (("prefix_space",),), "pattern": "llama3"}, "its pattern is another than GPT-2's"),
            ({"normalizer": (("prefix_space",), ("nfc",))}, "goes on after that"),
            ({"pattern": r"\w+|\W"}, r"has \w"),
            ({"pattern": r"(?P<a>a)|[^a]"}, "put it in other words"),
            (
                {"tokens": (b"<s>",), "special_tokens": {"<s>": 256}, "added_rules": {"<s>": {"normalized"}}}
                | {"normalizer": (("nfkc",),)},
                '"normalized", and the normalizer',
            ),
        ],
    )
    def test_refuses_before_it_writes(self, tmp_path: Path, fields: dict[str, Any], message: str) -> None:
        given_fields = dict(fields)
        tokens = (
            *(bytes([byte]) for byte in range(256)),
            *given_fields.pop("tokens", ()),
            *given_fields.pop("more", ()),
        )
        merges = np.array(given_fields.pop("merges", []), np.int32).reshape(-1, 3)
        tokenizer = Tokenizer(Vocabulary(tokens, merges, **given_fields))
        with pytest.raises(VocabularyError) as caught:
            tokenizer.to_huggingface(tmp_path / "out")
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
        assert list(tmp_path.iterdir()) == []


def test_samples_are_known_to_all() -> None:
    assert all(map(known, SAMPLES))
