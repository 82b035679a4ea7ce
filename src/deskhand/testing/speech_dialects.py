"""How each provider answers, for `speech_server`: pure functions that know no connection."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal

import msgspec
from aiohttp import web  # noqa: TID251 -- loopback

from .speech_sounds import RATE, KnownRecording, SpokenSounds

_ID = "3f0b7c1e-0000-4000-8000-000000000000"
_SNAKE = re.compile(r"_([a-z])")
_LANGUAGE = re.compile(r"[a-z]{2}(-[A-Za-z]{2,4})?")

Json = Any


class AskedSpeech(msgspec.Struct, frozen=True):
    """A request as it came; header names are in lower case. `fields` are those of a form, `file`
    what was sent in it, or as the body."""

    provider: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    fields: Mapping[str, str] = {}
    file: bytes = b""
    file_name: str = ""
    body: bytes = b""


class Refusal(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, body: Json) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


class OpenAIRules(msgspec.Struct, frozen=True, kw_only=True):
    """Where the copies of OpenAI's interface differ. No `voices` are any voice."""

    hear_models: tuple[str, ...]
    say_models: tuple[str, ...]
    voices: tuple[str, ...] = ()
    sounds: tuple[str, ...]
    max_chars: int = 4096
    needs_key: bool = True


OPENAI_RULES = {
    "openai": OpenAIRules(
        hear_models=("gpt-transcribe", "gpt-4o-transcribe", "gpt-4o-mini-transcribe", "whisper-1"),
        say_models=("gpt-4o-mini-tts", "tts-1", "tts-1-hd"),
        voices=("alloy", "ash", "coral", "echo", "fable", "nova", "onyx", "sage", "shimmer"),
        sounds=("opus", "wav"),
    ),
    "groq": OpenAIRules(
        hear_models=("whisper-large-v3", "whisper-large-v3-turbo"),
        say_models=("canopylabs/orpheus-v1-english",),
        voices=("autumn", "diana", "hannah", "austin", "daniel", "troy"),
        sounds=("wav",),
        max_chars=200,
    ),
    "own": OpenAIRules(
        hear_models=("Systran/faster-whisper-small", "parakeet"),
        say_models=("kokoro",),
        sounds=("wav",),
        needs_key=False,
    ),
}


def answer_openai(asked: AskedSpeech, method: str, key: str, sounds: SpokenSounds) -> web.Response:
    rules = OPENAI_RULES[asked.provider]
    if rules.needs_key and asked.headers.get("authorization") != f"Bearer {key}":
        raise _refuse_openai(401, "invalid_api_key", "Incorrect API key provided.")
    match method:
        case "audio/transcriptions":
            return _transcribe_openai(asked, rules, sounds)
        case "audio/speech":
            return _speak_openai(asked, rules, sounds)
        case _:
            raise _refuse_openai(404, "unknown_url", f"Invalid URL (POST /v1/{method})")


def _transcribe_openai(
    asked: AskedSpeech, rules: OpenAIRules, sounds: SpokenSounds
) -> web.Response:
    known = {"model", "response_format", "language", "languages[]", "prompt", "temperature"}
    fields = asked.fields
    if unknown := set(fields) - known:
        raise _refuse_openai(400, "unknown_parameter", f"Unknown parameter: {unknown}.")
    model = fields.get("model", "")
    if model not in rules.hear_models:
        raise _refuse_openai(404, "model_not_found", f"The model `{model}` does not exist.")
    form = fields.get("response_format", "json")
    is_whisper = "whisper" in model
    if form not in (("json", "verbose_json") if is_whisper else ("json",)):
        message = f"response_format '{form}' is not compatible with model '{model}'."
        raise _refuse_openai(400, "unsupported_value", message)
    language = fields.get("language", "")
    if language and not re.fullmatch("[a-z]{2}", language):
        message = f"Invalid language '{language}'. It must be in ISO-639-1 format."
        raise _refuse_openai(400, "invalid_language_format", message)
    ending = asked.file_name.rpartition(".")[2]
    if ending not in ("flac", "mp3", "mp4", "mpeg", "mpga", "m4a", "ogg", "wav", "webm"):
        raise _refuse_openai(400, "invalid_value", "Unrecognized file format.")
    heard = sounds.hear(asked.file)
    if heard is None:
        message = "Audio file might be corrupted or unsupported"
        raise _refuse_openai(400, "invalid_value", message)
    return web.json_response(_transcript_openai(heard, form, is_whisper))


def _speak_openai(asked: AskedSpeech, rules: OpenAIRules, sounds: SpokenSounds) -> web.Response:
    body = _read_json(asked)
    if unknown := set(body) - {"model", "input", "voice", "response_format", "speed"}:
        raise _refuse_openai(400, "unknown_parameter", f"Unknown parameter: {unknown}.")
    model, text, voice = (body.get(name) for name in ("model", "input", "voice"))
    if model not in rules.say_models:
        raise _refuse_openai(404, "model_not_found", f"The model `{model}` does not exist.")
    if not isinstance(text, str) or not 0 < len(text) <= rules.max_chars:
        message = f"[{{'type': 'string_too_long', 'ctx': {{'max_length': {rules.max_chars}}}}}]"
        raise _refuse_openai(400, "invalid_value", message)
    if not isinstance(voice, str) or (rules.voices and voice not in rules.voices):
        message = f"Input should be {', '.join(rules.voices)}"
        raise _refuse_openai(400, "invalid_value", message)
    sound = body.get("response_format", "mp3")
    if sound not in rules.sounds:
        message = f"response_format must be one of [{', '.join(rules.sounds)}]"
        raise _refuse_openai(400, "invalid_value", message)
    return _sound_response(sounds.say(text, sound), sound)


def _transcript_openai(heard: KnownRecording, form: str, is_whisper: bool) -> Json:
    if form == "verbose_json":
        names = {"en": "english", "de": "german", "fr": "french", "ja": "japanese"}
        return {
            "task": "transcribe",
            "language": names.get(heard.language, heard.language),
            "duration": heard.seconds,
            "text": f" {heard.text}" if heard.text else "",
            "segments": [],
            "usage": {"type": "duration", "seconds": math.ceil(heard.seconds)},
        }
    if is_whisper:
        return {"text": heard.text}
    return {
        "text": heard.text,
        "languages": [{"code": heard.language}] if heard.language else [],
        "usage": {"type": "duration", "seconds": heard.seconds},
    }


def answer_deepgram(
    asked: AskedSpeech, method: str, key: str, sounds: SpokenSounds
) -> web.Response:
    if asked.headers.get("authorization") != f"Token {key}":
        raise _refuse_deepgram(401, "INVALID_AUTH", "Invalid credentials.")
    match method:
        case "v1/listen":
            return _listen_deepgram(asked, sounds)
        case "v1/speak":
            return _speak_deepgram(asked, sounds)
        case _:
            raise _refuse_deepgram(404, "NOT_FOUND", "Not found.")


def _listen_deepgram(asked: AskedSpeech, sounds: SpokenSounds) -> web.Response:
    query = asked.query
    if unknown := set(query) - {"model", "smart_format", "detect_language", "language"}:
        raise _refuse_deepgram(400, "Bad Request", f"Unknown query parameter: {unknown}")
    if query.get("model") not in ("nova-2", "nova-3"):
        raise _refuse_deepgram(400, "Bad Request", "Bad Request: No such model/language.")
    language = query.get("language", "")
    if language and not _LANGUAGE.fullmatch(language):
        raise _refuse_deepgram(400, "Bad Request", "Bad Request: No such model/language.")
    kind = asked.headers.get("content-type", "")
    heard = sounds.hear(asked.body)
    if heard is None or not kind.startswith(("audio/", "application/octet-stream")):
        message = "Bad Request: failed to process audio: corrupt or unsupported data"
        raise _refuse_deepgram(400, "Bad Request", message)
    channel: Json = {"alternatives": [{"transcript": heard.text, "confidence": 0.99, "words": []}]}
    if query.get("detect_language") == "true" and heard.text:
        channel |= {"detected_language": heard.language, "language_confidence": 0.98}
    metadata = {
        "transaction_key": "deprecated",
        "request_id": _ID,
        "sha256": sha256(asked.body).hexdigest(),
        "created": "2026-11-29T00:00:00.000Z",
        "duration": heard.seconds,
        "channels": 1,
        "models": [_ID],
        "model_info": {_ID: {"name": "general-nova-3", "version": "1", "arch": "nova-3"}},
    }
    return web.json_response({"metadata": metadata, "results": {"channels": [channel]}})


def _speak_deepgram(asked: AskedSpeech, sounds: SpokenSounds) -> web.Response:
    query = asked.query
    if unknown := set(query) - {"model", "encoding", "container", "bit_rate"}:
        raise _refuse_deepgram(400, "Bad Request", f"Unknown query parameter: {unknown}")
    if not re.fullmatch(r"aura-(2-)?[a-z]+-[a-z]{2}", query.get("model", "")):
        raise _refuse_deepgram(400, "Bad Request", "Bad Request: No such model.")
    if (query.get("encoding"), query.get("container")) != ("opus", "ogg"):
        raise _refuse_deepgram(400, "UNSUPPORTED_AUDIO_FORMAT", "Unsupported audio format.")
    body = _read_json(asked)
    text = body.get("text")
    if set(body) != {"text"} or not isinstance(text, str) or not text.strip():
        raise _refuse_deepgram(400, "Bad Request", "Please specify exactly one of text or url.")
    if len(text) > 2000:
        message = "Input text exceeds maximum character limit of 2000."
        raise _refuse_deepgram(413, "PAYLOAD_TOO_LARGE", message)
    return _sound_response(sounds.say(text, "opus"), "opus")


def answer_elevenlabs(
    asked: AskedSpeech, method: str, key: str, sounds: SpokenSounds
) -> web.Response:
    if asked.headers.get("xi-api-key") != key:
        raise _refuse_elevenlabs(401, "invalid_api_key", "Invalid API key")
    if method == "v1/speech-to-text":
        return _transcribe_elevenlabs(asked, sounds)
    if method.startswith("v1/text-to-speech/"):
        return _speak_elevenlabs(asked, method.removeprefix("v1/text-to-speech/"), sounds)
    raise _refuse_elevenlabs(404, "not_found", "Not Found")


def _transcribe_elevenlabs(asked: AskedSpeech, sounds: SpokenSounds) -> web.Response:
    fields = asked.fields
    optional = {"language_code", "tag_audio_events", "timestamps_granularity", "diarize"}
    sent = {name for name, value in fields.items() if value != "null"}  # their client sends these
    if unknown := sent - optional - {"model_id"}:
        raise _refuse_elevenlabs(422, "unknown_field", f"Unknown field: {unknown}")
    if fields.get("model_id") not in ("scribe_v1", "scribe_v2", "scribe_v3"):
        message = f"'{fields.get('model_id')}' is not a valid model_id."
        raise _refuse_elevenlabs(400, "invalid_model_id", message)
    language = fields.get("language_code", "")
    if language and not re.fullmatch("[a-z]{2,3}", language):
        message = f"Language code '{language}' is not supported."
        raise _refuse_elevenlabs(400, "unsupported_language", message)
    heard = sounds.hear(asked.file)
    if heard is None:
        message = "File upload is corrupted. Please ensure it is playable audio."
        raise _refuse_elevenlabs(400, "invalid_audio", message)
    text = heard.text
    if not text and fields.get("tag_audio_events", "true") == "true":
        text = "(silence)"
    three = {"en": "eng", "de": "deu", "fr": "fra", "ja": "jpn"}
    answer = {
        "language_code": three.get(heard.language, heard.language),
        "language_probability": 0.98,
        "text": text,
        "words": [],
        "audio_duration_secs": heard.seconds,
    }
    return web.json_response(answer)


def _speak_elevenlabs(asked: AskedSpeech, voice: str, sounds: SpokenSounds) -> web.Response:
    if not re.fullmatch("[A-Za-z0-9]{20}", voice):
        message = f"A voice with the voice_id {voice} was not found."
        raise _refuse_elevenlabs(404, "voice_not_found", message)
    if asked.query != {"output_format": "opus_48000_32"}:
        message = f"Wrong query: {dict(asked.query)}"
        raise _refuse_elevenlabs(400, "invalid_output_format", message)
    body = _read_json(asked)
    if unknown := set(body) - {"text", "model_id", "language_code"}:
        raise _refuse_elevenlabs(422, "unknown_field", f"Unknown field: {unknown}")
    model = str(body.get("model_id"))
    if not model.startswith("eleven_"):
        raise _refuse_elevenlabs(400, "model_not_found", f"A model {model} was not found.")
    if "multilingual" in model and "language_code" in body:
        message = f"Model '{model}' does not support language_code."
        raise _refuse_elevenlabs(400, "unsupported_language", message)
    if not re.fullmatch("[a-z]{2}", str(body.get("language_code", "en"))):
        raise _refuse_elevenlabs(400, "unsupported_language", "Invalid language code.")
    text = body.get("text")
    if not isinstance(text, str) or not text.strip():
        raise _refuse_elevenlabs(400, "input_text_empty", "Input text is empty.")
    return _sound_response(sounds.say(text, "opus"), "opus")


SARVAM_LANGUAGES = (
    *("bn-IN", "en-IN", "gu-IN", "hi-IN", "kn-IN", "ml-IN"),
    *("mr-IN", "od-IN", "pa-IN", "ta-IN", "te-IN"),
)


def answer_sarvam(asked: AskedSpeech, method: str, key: str, sounds: SpokenSounds) -> web.Response:
    if asked.headers.get("api-subscription-key") != key:
        raise _refuse_sarvam(403, "invalid_api_key_error", "Invalid API key")
    if method == "speech-to-text":
        return _transcribe_sarvam(asked, sounds)
    if method == "text-to-speech":
        return _speak_sarvam(asked, sounds)
    raise _refuse_sarvam(404, "not_found_error", "Not found")


def _transcribe_sarvam(asked: AskedSpeech, sounds: SpokenSounds) -> web.Response:
    fields = asked.fields
    if unknown := set(fields) - {"model", "language_code", "mode"}:
        raise _refuse_sarvam(400, "invalid_request_error", f"Unknown field: {unknown}")
    if fields.get("model") not in ("saarika:v2.5", "saaras:v3"):
        raise _refuse_sarvam(400, "invalid_request_error", "Unknown model")
    if ("mode" in fields) != (fields["model"] == "saaras:v3"):
        raise _refuse_sarvam(400, "invalid_request_error", "mode is for saaras:v3")
    if fields.get("language_code") not in ("unknown", *SARVAM_LANGUAGES):
        raise _refuse_sarvam(400, "invalid_request_error", "Unknown language_code")
    heard = sounds.hear(asked.file)
    if heard is None:
        raise _refuse_sarvam(422, "unprocessable_entity_error", "Could not read the audio file")
    if heard.seconds > 30:
        raise _refuse_sarvam(400, "invalid_request_error", "Audio is longer than 30 seconds")
    answer = {
        "request_id": _ID,
        "transcript": heard.text,
        "language_code": f"{heard.language}-IN" if heard.language else None,
    }
    return web.json_response(answer)


def _speak_sarvam(asked: AskedSpeech, sounds: SpokenSounds) -> web.Response:
    body = _read_json(asked)
    if set(body) != {"text", "target_language_code", "speaker", "model"}:
        raise _refuse_sarvam(400, "invalid_request_error", f"Wrong fields: {sorted(body)}")
    if body["model"] != "bulbul:v3" or body["target_language_code"] not in SARVAM_LANGUAGES:
        raise _refuse_sarvam(400, "invalid_request_error", "Unknown model or language")
    if not re.fullmatch("[a-z]{2,20}", str(body["speaker"])):
        raise _refuse_sarvam(400, "invalid_request_error", "Unknown speaker")
    text = body["text"]
    if not isinstance(text, str) or not text.strip() or len(text) > 2500:
        raise _refuse_sarvam(400, "invalid_request_error", "text must have 1 to 2500 characters")
    audio = base64.b64encode(sounds.say(text, "wav")).decode()
    return web.json_response({"request_id": _ID, "audios": [audio]})


GOOGLE_VOICES = ("Kore", "Puck", "Zephyr", "Charon", "Fenrir", "Leda", "Orus", "Aoede")


class GoogleStruct(
    msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True
):
    """A part of a request to Google, where every field has to be a known one."""


class GoogleInlineData(GoogleStruct, frozen=True):
    mime_type: str
    data: str


class GooglePart(GoogleStruct, frozen=True):
    text: str = ""
    inline_data: GoogleInlineData | None = None


class GoogleContent(GoogleStruct, frozen=True):
    parts: tuple[GooglePart, ...]
    role: Literal["user"] = "user"


class GooglePrebuiltVoice(GoogleStruct, frozen=True):
    voice_name: str


class GoogleVoice(GoogleStruct, frozen=True):
    prebuilt_voice_config: GooglePrebuiltVoice


class GoogleSpeechConfig(GoogleStruct, frozen=True):
    voice_config: GoogleVoice


class GoogleTranscriptionConfig(GoogleStruct, frozen=True):
    language_codes: tuple[str, ...] = ()


class GoogleConfig(GoogleStruct, frozen=True):
    temperature: float | None = None
    response_modalities: tuple[str, ...] = ()
    speech_config: GoogleSpeechConfig | None = None
    audio_transcription_config: GoogleTranscriptionConfig | None = None


class GoogleRequest(GoogleStruct, frozen=True):
    contents: tuple[GoogleContent, ...]
    system_instruction: GoogleContent | None = None
    generation_config: GoogleConfig | None = None


def answer_google(asked: AskedSpeech, method: str, key: str, sounds: SpokenSounds) -> web.Response:
    given = asked.headers.get("x-goog-api-key")
    if given is None:
        message = "Method doesn't allow unregistered callers."
        raise _refuse_google(403, "PERMISSION_DENIED", message)
    if given != key:
        message = "API key not valid. Please pass a valid API key."
        raise _refuse_google(400, "INVALID_ARGUMENT", message)
    found = re.fullmatch(r"models/(gemini-[a-z0-9.-]+):generateContent", method)
    if found is None:
        raise _refuse_google(404, "NOT_FOUND", f"{method} is not found for API version v1beta.")
    try:
        body = msgspec.convert(_to_camel(msgspec.json.decode(asked.body)), GoogleRequest)
    except ValueError as error:
        message = f"Invalid JSON payload received. {error}"
        raise _refuse_google(400, "INVALID_ARGUMENT", message) from error
    is_speaking = found[1].endswith(("-tts", "-tts-preview"))
    part = _speak_google(found[1], body, sounds) if is_speaking else _hear_google(body, sounds)
    content = {"role": "model", "parts": [part]}
    answer = {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "totalTokenCount": 20},
        "modelVersion": found[1],
        "responseId": "rsp",
    }
    return web.json_response(answer)


def _to_camel(value: Json) -> Json:
    """Field names of JSON may be written `mime_type`, too, and their client mixes both."""
    if isinstance(value, list):
        return [_to_camel(each) for each in value]
    if isinstance(value, dict):
        return {_SNAKE.sub(_raise_letter, name): _to_camel(each) for name, each in value.items()}
    return value


def _raise_letter(found: re.Match[str]) -> str:
    return found[1].upper()


def _hear_google(body: GoogleRequest, sounds: SpokenSounds) -> Json:
    parts = [part for content in body.contents for part in content.parts]
    audio = [part.inline_data for part in parts if part.inline_data is not None]
    try:
        data = base64.b64decode(audio[0].data, validate=True)
    except (ValueError, IndexError) as error:
        message = "Base64 decoding failed for the audio"
        raise _refuse_google(400, "INVALID_ARGUMENT", message) from error
    heard = sounds.hear(data)
    if heard is None or not audio[0].mime_type.startswith("audio/"):
        message = "Request contains an invalid argument."
        raise _refuse_google(400, "INVALID_ARGUMENT", message)
    config = body.generation_config or GoogleConfig()
    if config.audio_transcription_config is not None:
        said = {"text": heard.text, "languageCode": heard.language}
        return {"audioTranscription": said} if heard.text else {}
    if body.system_instruction is None:
        return {"text": "What a nice recording!"}  # it was not told what to do with it
    return {"text": f"{heard.text or '[nobody speaks]'}\n"}


def _speak_google(model: str, body: GoogleRequest, sounds: SpokenSounds) -> Json:
    config = body.generation_config or GoogleConfig()
    speech = config.speech_config
    if config.response_modalities != ("AUDIO",) or speech is None:
        message = "The requested combination of response modalities (TEXT) is not supported."
        raise _refuse_google(400, "INVALID_ARGUMENT", message)
    if speech.voice_config.prebuilt_voice_config.voice_name not in GOOGLE_VOICES:
        message = "Voice name is not supported. Allowed voice names are: kore, puck"
        raise _refuse_google(400, "INVALID_ARGUMENT", message)
    text = "".join(part.text for content in body.contents for part in content.parts)
    if not text.strip():
        message = "* GenerateContentRequest.contents: contents is not specified"
        raise _refuse_google(400, "INVALID_ARGUMENT", message)
    is_new = model.startswith("gemini-3.8")
    data = sounds.say(text, "wav" if is_new else "samples")
    mime = "audio/wav" if is_new else f"audio/L16;codec=pcm;rate={RATE}"
    return {"inlineData": {"mimeType": mime, "data": base64.b64encode(data).decode()}}


def _refuse_openai(status: int, code: str, message: str) -> Refusal:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return Refusal(status, {"error": error})


def _refuse_deepgram(status: int, code: str, message: str) -> Refusal:
    return Refusal(status, {"err_code": code, "err_msg": message, "request_id": _ID})


def _refuse_elevenlabs(status: int, code: str, message: str) -> Refusal:
    return Refusal(status, {"detail": {"status": code, "message": message}})


def _refuse_google(status: int, code: str, message: str) -> Refusal:
    return Refusal(status, {"error": {"code": status, "message": message, "status": code}})


def _refuse_sarvam(status: int, code: str, message: str) -> Refusal:
    return Refusal(status, {"error": {"code": code, "message": message, "request_id": _ID}})


ERRORS = {
    "openai": _refuse_openai,
    "groq": _refuse_openai,
    "own": _refuse_openai,
    "deepgram": _refuse_deepgram,
    "elevenlabs": _refuse_elevenlabs,
    "google": _refuse_google,
    "sarvam": _refuse_sarvam,
}


def _read_json(asked: AskedSpeech) -> dict[str, Any]:
    """The object of a body that says that it is JSON."""
    try:
        if not asked.headers.get("content-type", "").startswith("application/json"):
            raise ValueError("it is not said to be JSON")
        return msgspec.json.decode(asked.body, type=dict[str, Any])
    except ValueError as error:
        message = f"We could not parse the JSON body of your request: {error}"
        raise ERRORS[asked.provider](400, "Bad Request", message) from error


def _sound_response(data: bytes, sound: str) -> web.Response:
    kind = "audio/ogg" if sound == "opus" else "audio/wav"
    return web.Response(body=data, content_type=kind)
