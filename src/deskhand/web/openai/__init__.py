"""The agents as models of an OpenAI-compatible API: whatever talks to that talks to them."""

from .endpoint import ENDPOINTS

__all__ = ["ENDPOINTS"]
