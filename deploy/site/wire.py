"""Writes the reference of the wire from the `.proto` files and their comments."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc_tools.protoc
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    ServiceDescriptorProto,
)
from pages import REPOSITORY

_PACKAGE = "hlorank.v1"
# Numbers of the fields of descriptors, which make up the paths of comments.
_FILE_MESSAGE, _FILE_ENUM, _FILE_SERVICE, _MEMBER = 4, 5, 6, 2


def wire_reference() -> str:
    """Returns the page."""
    parts = [
        "# Wire",
        f"Every service, message and enum of `{_PACKAGE}`, generated from the `.proto` files.",
    ]
    for file in _files():
        comments = _comments(file)
        for number, service in enumerate(file.service):
            parts += _service(service, comments, (_FILE_SERVICE, number))
        for number, message in enumerate(file.message_type):
            parts += _message(message, comments, (_FILE_MESSAGE, number))
        for number, described in enumerate(file.enum_type):
            parts += _enum(described, comments, (_FILE_ENUM, number))
    return "\n\n".join(parts) + "\n"


def _files() -> list[FileDescriptorProto]:
    protos = REPOSITORY / "proto"
    with TemporaryDirectory() as folder:
        out = Path(folder, "descriptors")
        names = [str(path) for path in sorted((protos / "hlorank/v1").glob("*_service.proto"))]
        arguments = [
            "protoc",
            f"--proto_path={protos}",
            "--include_imports",
            "--include_source_info",
        ]
        well_known = Path(grpc_tools.protoc.__file__).parent / "_proto"
        arguments += [f"--proto_path={well_known}", f"--descriptor_set_out={out}", *names]
        if grpc_tools.protoc.main(arguments):
            raise SystemExit("docs: the .proto files cannot be read")
        files = FileDescriptorSet.FromString(out.read_bytes()).file
    own = [file for file in files if file.package == _PACKAGE]
    return sorted(own, key=lambda file: (not file.service, file.name))


def _comments(file: FileDescriptorProto) -> dict[tuple[int, ...], str]:
    locations = file.source_code_info.location
    return {tuple(each.path): " ".join(each.leading_comments.split()) for each in locations}


def _service(service: ServiceDescriptorProto, comments: dict, path: tuple) -> Iterator[str]:
    yield f"## {service.name}"
    yield comments.get(path, "")
    rows = ["| method | request | answer | |", "| --- | --- | --- | --- |"]
    for number, method in enumerate(service.method):
        stream = ("", "stream of ")
        request = stream[method.client_streaming] + _type(method.input_type)
        answer = stream[method.server_streaming] + _type(method.output_type)
        text = _cell(comments.get((*path, _MEMBER, number), ""))
        rows.append(f"| `{method.name}` | {request} | {answer} | {text} |")
    yield "\n".join(rows)


def _message(message: DescriptorProto, comments: dict, path: tuple) -> Iterator[str]:
    yield f"## {message.name}"
    yield comments.get(path, "")
    if not message.field:
        return
    rows = ["| number | field | type | |", "| --- | --- | --- | --- |"]
    for number, field in enumerate(message.field):
        kind = _field_type(field)
        if field.HasField("oneof_index"):
            kind += f", one of `{message.oneof_decl[field.oneof_index].name}`"
        text = _cell(comments.get((*path, _MEMBER, number), ""))
        rows.append(f"| {field.number} | `{field.name}` | {kind} | {text} |")
    yield "\n".join(rows)


def _enum(described: EnumDescriptorProto, comments: dict, path: tuple) -> Iterator[str]:
    yield f"## {described.name}"
    yield comments.get(path, "")
    rows = ["| number | value | |", "| --- | --- | --- |"]
    for number, value in enumerate(described.value):
        text = _cell(comments.get((*path, _MEMBER, number), ""))
        rows.append(f"| {value.number} | `{value.name}` | {text} |")
    yield "\n".join(rows)


def _field_type(field: FieldDescriptorProto) -> str:
    scalar = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    kind = _type(field.type_name) if field.type_name else f"`{scalar}`"
    return f"list of {kind}" if field.label == FieldDescriptorProto.LABEL_REPEATED else kind


def _type(name: str) -> str:
    short = name.rpartition(".")[2]
    is_own = name.startswith(f".{_PACKAGE}.")
    return f"[{short}](#{short.lower()})" if is_own else f"`{name.lstrip('.')}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
