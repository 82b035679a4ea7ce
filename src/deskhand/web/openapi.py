"""The table of endpoints as an OpenAPI document: the schemas are those of the structs that are
really read and sent."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from ..types.people import SCOPES
from .errors import OPENAI_PREFIX, ErrorBody, OpenAIErrorBody
from .routing import Call, Endpoint, Nothing

REF = "#/components/schemas/{name}"
TITLE = "Deskhand"
DESCRIPTION = (
    "A self-hosted personal AI agent. Everything here needs a token (`deskhand tokens "
    "create`) except what says "
    "otherwise; what the token's user may not see is answered as if it were not there."
)
REFUSALS = {
    400: "Something about the request is not right",
    401: "No credential, or one that does not hold",
    403: "The credential may not do this, or the page of another site asked",
    404: "It is not there, or not yours to know of",
    405: "This address does not support this method",
    421: "Reached under a name that is not one of ours",
    429: "Too many wrong credentials",
    500: "Something broke",
    503: "It cannot be done at the moment",
}
BODY_REFUSALS = {
    408: "The body came too slowly",
    413: "The body is too large",
    415: "The body is of another type",
}
OTHER_REFUSALS = {409: "Not while it is so", 501: "Not yet", 502: "The model could not be asked"}
COOKIE_SCHEME = "page"


def build_document(endpoints: Iterable[Endpoint], version: str) -> dict[str, Any]:
    """The OpenAPI 3.1 document."""
    listed = list(endpoints)
    schemas = _Schemas(listed)
    paths: dict[str, Any] = {}
    for endpoint in listed:
        path = re.sub(r":\w+\}", "}", endpoint.path)
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint, schemas)
    bearer = {
        "type": "http",
        "scheme": "bearer",
        "description": "A token: `deskhand tokens create`.",
    }
    cookie = {
        "type": "apiKey",
        "in": "cookie",
        "name": "deskhand",
        "description": "A browser that was logged in.",
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": version, "description": DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "securitySchemes": {"token": bearer, COOKIE_SCHEME: cookie},
        },
    }


class _Schemas:
    """The schemas of all types in the table, by their name."""

    def __init__(self, endpoints: list[Endpoint]) -> None:
        self._types: list[Any] = [ErrorBody, OpenAIErrorBody]
        for endpoint in endpoints:
            self._types += [
                each
                for each in (endpoint.body, endpoint.returns, endpoint.query)
                if each is not None
            ]
        made, self.components = msgspec.json.schema_components(self._types, ref_template=REF)
        self._made = dict(zip(map(repr, self._types), made, strict=True))
        _name_tags(self.components)

    def get(self, kind: Any) -> dict[str, Any]:
        return self._made[repr(kind)]

    def resolve(self, kind: Any) -> dict[str, Any]:
        """The schema itself, where there is a name for it."""
        found = self.get(kind)
        return dict(self.components[found["$ref"].rpartition("/")[2]]) if "$ref" in found else found


def _name_tags(components: dict[str, Any]) -> None:
    """A tag is always sent: what has one requires it."""
    for schema in components.values():
        tag = schema.get("properties", {}).get("type", {})
        if (
            "enum" in tag
            and len(tag["enum"]) == 1
            and "type" not in schema.setdefault("required", [])
        ):
            schema["required"] = ["type", *schema["required"]]


def _operation(endpoint: Endpoint, schemas: _Schemas) -> dict[str, Any]:
    public = endpoint.needs == "public"
    operation: dict[str, Any] = {
        "operationId": _operation_id(endpoint),
        "summary": endpoint.summary,
        "tags": [endpoint.tag],
        "parameters": [*_path_parameters(endpoint), *_query_parameters(endpoint, schemas)],
        "responses": _responses(endpoint, schemas),
        "security": [{}] if public else [{"token": []}, {COOKIE_SCHEME: []}],
    }
    if not public:
        operation["description"] = (
            f"Needs the scope `{endpoint.needs}`, one of: {', '.join(SCOPES)}."
        )
    if (body := _request_body(endpoint, schemas)) is not None:
        operation["requestBody"] = body
    return operation


def _operation_id(endpoint: Endpoint) -> str:
    return re.sub(r"\W+", "_", f"{endpoint.method.lower()}_{endpoint.path}").strip("_")


def _path_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in endpoint.parameters
    ]


def _query_parameters(endpoint: Endpoint, schemas: _Schemas) -> list[dict[str, Any]]:
    if endpoint.query is Nothing:
        return []
    whole = schemas.resolve(endpoint.query)
    required = whole.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": schema}
        for name, schema in whole.get("properties", {}).items()
    ]


def _request_body(endpoint: Endpoint, schemas: _Schemas) -> dict[str, Any] | None:
    if endpoint.raw:
        kind = endpoint.body
        schema = _RAW[endpoint.takes] if kind is None else schemas.get(kind)
        return {"required": True, "content": {endpoint.takes: {"schema": schema}}}
    if endpoint.body is None:
        return None
    return {
        "required": not endpoint.optional,
        "content": {"application/json": {"schema": schemas.get(endpoint.body)}},
    }


_RAW: dict[str, dict[str, Any]] = {
    "multipart/form-data": {
        "type": "object",
        "properties": {
            "files": {
                "type": "array",
                "items": {"type": "string", "format": "binary"},
                "minItems": 1,
            }
        },
        "required": ["files"],
    },
    "*/*": {"type": "string", "format": "binary", "minLength": 1},
}


def _responses(endpoint: Endpoint, schemas: _Schemas) -> dict[str, Any]:
    good: dict[str, Any] = {"description": "It went well"}
    if endpoint.status != 204:
        schema = (
            schemas.get(endpoint.returns) if endpoint.returns is not None else {"type": "string"}
        )
        good["content"] = {
            endpoint.media: {"schema": schema if endpoint.media == "application/json" else {}}
        }
    shape = OpenAIErrorBody if endpoint.path.startswith(OPENAI_PREFIX) else ErrorBody
    wrong: dict[str, Any] = {"application/json": {"schema": schemas.get(shape)}}
    if endpoint.media == "text/html":  # what people follow says with a page what is wrong
        wrong["text/html"] = {"schema": {}}
    reads = endpoint.raw or endpoint.body is not None
    refusals = {**REFUSALS, **(BODY_REFUSALS if reads else {}), **OTHER_REFUSALS}
    if endpoint.invalid is not None:
        refusals[endpoint.invalid] = "A field does not fit: `detail` names it"
    return {
        str(endpoint.status): good,
        **{
            str(status): {"description": said, "content": wrong}
            for status, said in refusals.items()
        },
    }


def make_openapi_endpoint(others: Iterable[Endpoint]) -> Endpoint:
    """The document's own line of the table."""
    listed = list(others)

    async def get_document(call: Call) -> dict[str, Any]:
        return build_document([*listed, line], call.web.version)

    line = Endpoint(
        "GET",
        "/openapi.json",
        "public",
        get_document,
        "Get this document",
        returns=dict[str, Any],
        tag="general",
    )
    return line
