"""Names what a file contains, by its content, as the Rust side does.

``formats.json`` is the table of formats that are not read, a copy of the one in ``graph``;
``tests/data/recognize`` holds both readers to the same answers.
"""

from hlorank.recognize.formats import name_of, name_of_zip
from hlorank.recognize.modules import modules_of
from hlorank.recognize.protobuf import holds_module, inner_module, is_module
from hlorank.recognize.text import decoded, starts_with_module
from hlorank.recognize.unpack import UnpackError, unpacked
from hlorank.recognize.without_header import with_header

__all__ = [
    "UnpackError",
    "decoded",
    "holds_module",
    "inner_module",
    "is_module",
    "modules_of",
    "name_of",
    "name_of_zip",
    "starts_with_module",
    "unpacked",
    "with_header",
]
