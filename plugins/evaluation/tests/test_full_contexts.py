"""A prompt that does not fit is a result of the policy, however a server says so.

llama.cpp's body was recorded from its own server. The others are written after the servers' documentation and sources.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from gem_evaluation._refusals import Refusal

LLAMA_CPP = {
    "error": {
        "code": 400,
        "message": "request (267 tokens) exceeds the available context size (256 tokens), try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 267,
        "n_ctx": 256,
    }
}
FULL: dict[str, tuple[int, Any]] = {
    "llama.cpp": (400, LLAMA_CPP),
    "llama.cpp, fields alone": (400, {"error": {"message": "no", "n_prompt_tokens": 267, "n_ctx": 256}}),
    "vLLM": (
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 4096 tokens. However, you requested 4200 tokens in the "
            "messages. Please reduce the length of the messages.",
            "type": "BadRequestError",
            "code": 400,
        },
    ),
    "SGLang": (
        400,
        {"message": "The input (5000 tokens) is longer than the model's context length (4096 tokens).", "code": 400},
    ),
    "TGI": (
        422,
        {
            "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` "
            "tokens and 20 `max_new_tokens`",
            "error_type": "validation",
        },
    ),
    "TGI, of the input alone": (422, {"error": "`inputs` must have less than 1000 tokens. Given: 1254"}),
    "LM Studio": (
        400,
        {
            "error": "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded "
            "with a limit of only 4096 tokens"
        },
    ),
    "Ollama": (400, {"error": {"message": "the input length exceeds the context length", "type": "api_error"}}),
    "OpenAI": (
        400,
        {
            "error": {
                "message": "Your messages resulted in 9000 tokens.",
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            }
        },
    ),
    "OpenRouter": (
        400,
        {"error": {"message": "This endpoint's maximum context length is 8192 tokens.", "code": 400, "metadata": {}}},
    ),
    "Anthropic": (
        400,
        {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "prompt is too long: 208310 tokens > 200000 maximum"},
        },
    ),
    "Gemini": (
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": "The input token count (120000) exceeds the maximum number of tokens allowed (104857).",
                    "status": "INVALID_ARGUMENT",
                }
            }
        ],
    ),
    "Mistral": (
        400,
        {"message": "Prompt contains 40000 tokens, too large for model with 32768 maximum", "type": "invalid_request"},
    ),
    "vLLM, its other words": (
        400,
        {"error": {"message": "The decoder prompt (length 5000) is longer than the maximum model length of 4096."}},
    ),
    "xAI": (
        400,
        {"code": "Client specified an invalid argument", "error": "This model's maximum prompt length is 131072"},
    ),
    "Moonshot": (400, {"error": {"message": "Your request exceeded model token limit: 8192"}}),
    "DashScope": (400, {"error": {"message": "Range of input length should be [1, 30720]"}}),
    "TabbyAPI": (400, {"detail": "Prompt length 5000 is greater than max_seq_len 4096"}),
    "a proxy": (413, "<html>Request Entity Too Large</html>"),
}
OTHER: dict[str, tuple[int, Any]] = {
    "a field": (400, {"error": {"message": "top_k is not a field", "type": "invalid_request_error"}}),
    "a model": (400, {"error": {"message": "model gpt-9 does not exist", "code": "model_not_found"}}),
    "a value": (422, {"detail": [{"loc": ["body", "temperature"], "msg": "Input should be less than 2"}]}),
    "a limit of the response": (400, {"error": {"message": "max_tokens must be at least 1"}}),
    "an image": (400, {"error": {"message": "The image is too large."}}),
    "a large setting": (
        400,
        {"error": {"message": "max_tokens is too large: 100000. This model supports at most 16384 completion tokens"}},
    ),
    "vLLM, of a setting": (
        400,
        {
            "error": {
                "message": "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context "
                "length is 4096 tokens and your request has 12 input tokens"
            }
        },
    ),
    "a list": (400, {"error": {"message": "Invalid 'stop': array too long.", "code": "array_above_max_length"}}),
    "a pace": (
        413,
        {"error": {"message": "Request too large: tokens per minute (TPM)", "code": "rate_limit_exceeded"}},
    ),
    "an echo": (422, {"detail": [{"msg": "bad", "input": "a context window"}]}),
}


def body(document: Any) -> bytes:
    return document.encode() if isinstance(document, str) else json.dumps(document).encode()


@pytest.mark.parametrize("server", FULL)
def test_a_full_context_is_known_by_what_each_server_says(server: str) -> None:
    status, document = FULL[server]
    assert Refusal(status, body(document)).says_full()


NOT_OF_LENGTH = (
    "Your credit balance is too low to access the API",
    "API key expired",
    "Conversation roles must alternate user/assistant",
    "Invalid 'messages[1].tool_calls[0].function.arguments'",
    "The response was filtered by the content_filter",
)


@pytest.mark.parametrize("said", NOT_OF_LENGTH)
def test_a_later_turn_can_be_refused_for_other_reasons(said: str) -> None:
    assert not Refusal(400, body({"error": {"message": said}})).says_full(later=True)
    assert Refusal(400, body({"error": {"message": "no"}})).says_full(later=True)


@pytest.mark.parametrize("what", OTHER)
def test_other_errors_are_no_full_context(what: str) -> None:
    status, document = OTHER[what]
    assert not Refusal(status, body(document)).says_full()
