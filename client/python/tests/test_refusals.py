"""Every refusal of ``tests/data/refusals.json`` is an error with class, reason, field and words."""

import base64
import copy
import json
import struct
from collections import defaultdict

import grpc
import pytest
from google.protobuf.json_format import ParseDict
from servers import DATA, run_server

from hlorank import Client, RefusedError
from hlorank.wire import messages
from hlorank.wire.refusals import _ERROR_OF_CODE
from hlorank.wire.transport import Method

TABLE = json.loads((DATA / "refusals.json").read_text())
BY_FLAGS = defaultdict(list)
for row in TABLE["refusals"]:
    # The model of those columns is made by the tests of the server.
    if '"loops"' not in json.dumps([row, TABLE["requests"][row["of"]]]):
        BY_FLAGS[tuple(row.get("flags", ()))].append(row)
BYTES = {"$bytes": "B", "$u32": "<I", "$f32": "<f"}
"""How the table's lists of numbers are packed"""


def written_out(value):
    """Writes out what the table abbreviates, as ``tests/tests/calls/refusals.rs`` does."""
    if isinstance(value, list):
        return [written_out(each) for each in value]
    if not isinstance(value, dict):
        return value
    form = next((name for name in value if name.startswith("$")), None)
    if form is None:
        return {name: written_out(each) for name, each in value.items()}
    short, times = value[form], value.get("times", 1)
    if form == "$hlo":
        text = "HloModule m\n\nENTRY e {\n  " + "\n  ".join(short) + "\n}\n"
        return text
    if isinstance(short, str):
        text = short * times
        return text if form == "$repeated" else base64.b64encode(text.encode()).decode()
    every = short * times
    for place, other in value.get("but", {}).items():
        every[int(place)] = other
    if form == "$repeated":
        return every
    convert = float if form == "$f32" else int
    packed = b"".join(struct.pack(BYTES[form], convert(each)) for each in every)
    return base64.b64encode(packed).decode()


def changed(request, changes):
    """Changes a request at paths such as ``seconds.1``; None removes."""
    whole = {"": copy.deepcopy(request)}
    for path, value in changes.items():
        *parents, last = path.split(".") if path else [""]
        place = whole if not path else whole[""]
        for name in parents:
            place = place[int(name) if isinstance(place, list) else name]
        if isinstance(place, list):
            at = int(last)
            place[at : at + 1] = [] if value is None else [value]
        elif value is None:
            place.pop(last, None)
        else:
            place[last] = value
    return whole[""]


def answers_of(client, sound, request):
    """Makes a call until it ends; yields every answer of a stream."""
    name = sound["call"].partition("/")[2]
    method = Method(sound["call"], getattr(messages, f"{name}Response"))
    sent = [
        ParseDict(written_out(each), getattr(messages, f"{name}Request")()).SerializeToString()
        for each in (request if isinstance(request, list) else [request])
    ]
    if not isinstance(request, list):
        client._transport.call(method, sent[0], (), 60.0)
        return
    exchange = client._transport.open(method, (), 60.0)
    for message in sent:
        exchange.write(message)
    exchange.done_writing()
    while (answer := exchange.read()) is not None:
        yield answer


@pytest.mark.parametrize("flags", BY_FLAGS)
def test_every_refusal_of_the_table_is_an_error_with_reason_field_and_words(flags, tmp_path):
    store = () if "--measurements=off" in flags else (f"--measurements={tmp_path / 'store'}",)
    models = tmp_path / "models"
    models.mkdir()
    for folder in ("all-models", "registry"):
        for model in (DATA / folder).iterdir():
            (models / model.name).symlink_to(model)
    wrong = []
    with run_server(f"--models={models}", *flags, *store) as address, Client(address) as client:
        for row in BY_FLAGS[flags]:
            sound = TABLE["requests"][row["of"]]
            if row["with"]:
                list(answers_of(client, sound, sound["request"]))
            answers = []
            with pytest.raises(RefusedError) as refused:
                answers += answers_of(client, sound, changed(sound["request"], row["with"]))
            error = refused.value
            code = grpc.StatusCode[row.get("code", "INVALID_ARGUMENT")]
            kind = _ERROR_OF_CODE.get(code, RefusedError)
            said = type(error), error.code, error.reason, error.fields[:1], max(0, len(answers) - 1)
            field = (row["field"],) if row.get("field") else ()
            words = [*row["words"], f"{code.name}, {row['reason']})"]
            missing = [word for word in words if word not in str(error)]
            if said != (kind, code, row["reason"], field, row.get("scored", 0)) or missing:
                wrong.append(f"{row}\n  is {said}: {error}")
            assert error.retry_after is None, "trying again does not help"
    assert not wrong, "\n".join(wrong)
