//! Names what a file or a field of a request contains, by its content: what is read, and also what is not.
//!
//! `formats.json` lists the formats that are not read, for this reader and for Python's; `tests/data/recognize` holds both
//! to the same answers.

mod decoded;
mod field;
mod file_kind;
mod formats;
mod log_prefix;
mod modules;
mod naming;
mod protobuf;
mod unpack;
mod without_header;

pub use self::file_kind::FileKind;
pub(crate) use self::{
    decoded::decoded,
    field::{named_module, named_text},
    modules::{TextModule, modules_of},
    naming::{name_of, name_of_zip},
    protobuf::inner_module,
    unpack::unpacked,
    without_header::with_header,
};
