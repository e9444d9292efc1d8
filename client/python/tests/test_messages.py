import re
import subprocess
import sys

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from servers import REPOSITORY

from hlorank import messages


def test_the_messages_are_those_of_the_proto_files(tmp_path):
    shipped = REPOSITORY / "client/python/hlorank" / messages.DESCRIPTORS
    makefile = (REPOSITORY / "Makefile").read_text()
    protos = re.search(r"^CLIENT_PROTOS := (.*)$", makefile, re.MULTILINE)
    output = tmp_path / "messages.binpb"
    arguments = [f"--proto_path={REPOSITORY / 'proto'}", "--include_imports"]
    arguments += [f"--descriptor_set_out={output}", *protos[1].split()]
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *arguments], check=True)
    made = FileDescriptorSet.FromString(output.read_bytes())
    assert made == FileDescriptorSet.FromString(shipped.read_bytes()), "run `make messages`"


@pytest.mark.parametrize("unknown", [b"", b"\xfa\x3e\x03abc"])
def test_a_module_inside_a_message_stays_as_it_came(unknown):
    module = unknown + messages.HloModuleProto(name="module").SerializeToString()
    tuning = messages.ModuleTuningData(module=module).SerializeToString()
    assert messages.ModuleTuningData.FromString(tuning).module == module
