//! Names what a file or a field of a request contains, by its content: what is read, and also what is not.
//!
//! `formats.json` lists the formats that are not read, for this reader and for Python's; `tests/data/recognize` holds both
//! to the same answers.

mod field;
mod formats;
mod modules;
mod protobuf;
mod unpack;

pub use self::protobuf::FileKind;
pub(crate) use self::{
    field::{named_module, named_text},
    formats::{decoded, name_of, name_of_zip},
    modules::{TextModule, modules_of, with_header},
    protobuf::inner_module,
    unpack::unpacked,
};
