"""A language model of 500 KB, made in 50 ms: random weights, but a real file for a real engine.
Needs the dev packages.

It talks nonsense. Its output layer leans towards what closes JSON strings and objects, so that a
reply under a schema ends before its limit of tokens.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import gguf
import numpy as np

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CORPUS = (
    "the user the tool the text reply result and that this is not name argument read write "
    "list file lines reminders "
    "here rows nothing begins plants files program found numbers changed with what person "
    "everything change sister "
    "cars dentist for vegan water about lives folder new say from you else shopping columns "
    "days tell have functions "
    "something guests date sentence shop settings pictures even call tomorrow short table "
    "run dates are did wrote "
    "phone writing request already folders changes minutes each define import header save "
    "all number compute assist"
)
"""Words of our prompts among them: cut into letters these would not fit into a slot."""
DIM = 64
LAYERS = 2
HEADS = 4
INNER = 128
LIKED = '"}],: '


def make_tiny_gguf(path: Path, context: int = 4096) -> Path:
    """Write the model to `path`. The same bytes every time."""
    tokens, merges = _vocabulary()
    every = tokens + SPECIAL
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name("tiny-random")
    writer.add_context_length(context)
    writer.add_embedding_length(DIM)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(DIM // HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(every))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(every)
    writer.add_token_merges(merges)
    writer.add_token_types(
        [gguf.TokenType.NORMAL] * len(tokens) + [gguf.TokenType.CONTROL] * len(SPECIAL)
    )
    writer.add_bos_token_id(len(tokens))
    writer.add_eos_token_id(len(tokens) + 2)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
    _add_tensors(writer, tokens)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_tensors(writer: Any, tokens: list[str]) -> None:
    """float32 throughout; matrices are (out, in)."""
    random = np.random.default_rng(0)

    def matrix(rows: int, columns: int) -> Any:
        return (random.standard_normal((rows, columns)) * 0.05).astype(np.float32)

    size = len(tokens) + len(SPECIAL)
    embedding = matrix(size, DIM)
    output = matrix(size, DIM)
    # Dimension 0 is a constant line through the residual stream: a preference that no input can
    # change.
    embedding[:, 0] = 1.0
    output[:, 0] = 0.0
    characters = _byte_characters()
    for i, liked in enumerate(LIKED):
        output[tokens.index(characters[ord(liked)]), 0] = 1.0 - 0.05 * i
    output[len(tokens) + 2, 0] = 0.9
    output[len(tokens), 0] = output[len(tokens) + 1, 0] = -5.0
    writer.add_tensor("token_embd.weight", embedding)
    writer.add_tensor("output_norm.weight", np.ones(DIM, np.float32))
    writer.add_tensor("output.weight", output)
    for layer in range(LAYERS):
        place = f"blk.{layer}."
        writer.add_tensor(f"{place}attn_norm.weight", np.ones(DIM, np.float32))
        writer.add_tensor(f"{place}ffn_norm.weight", np.ones(DIM, np.float32))
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            writer.add_tensor(f"{place}{name}.weight", matrix(DIM, DIM))
        writer.add_tensor(f"{place}ffn_gate.weight", matrix(INNER, DIM))
        writer.add_tensor(f"{place}ffn_up.weight", matrix(INNER, DIM))
        writer.add_tensor(f"{place}ffn_down.weight", matrix(DIM, INNER))


def _byte_characters() -> dict[int, str]:
    """GPT-2's printable character for each byte.

    https://github.com/openai/gpt-2/blob/master/src/encoder.py, bytes_to_unicode
    """
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {
        byte: chr(256 + n) for n, byte in enumerate(others)
    }


def _vocabulary(wanted: int = 700) -> tuple[list[str], list[str]]:
    """Tokens and merges of a byte-pair encoding, trained on a handful of words."""
    characters = _byte_characters()
    words = [[characters[byte] for byte in f" {word}".encode()] for word in CORPUS.split()]
    merges: list[tuple[str, str]] = []
    for _ in range(wanted):
        pairs: dict[tuple[str, str], int] = {}
        for word in words:
            for pair in itertools.pairwise(word):
                pairs[pair] = pairs.get(pair, 0) + 1
        if not pairs:
            break
        best = max(pairs, key=pairs.__getitem__)
        merges.append(best)
        words = [_merge(word, best) for word in words]
    tokens = [characters[byte] for byte in range(256)]
    tokens += [joined for joined in dict.fromkeys(a + b for a, b in merges) if joined not in tokens]
    return tokens, [f"{a} {b}" for a, b in merges]


def _merge(word: list[str], pair: tuple[str, str]) -> list[str]:
    merged: list[str] = []
    for piece in word:
        if merged and (merged[-1], piece) == pair:
            merged[-1] += piece
        else:
            merged.append(piece)
    return merged
