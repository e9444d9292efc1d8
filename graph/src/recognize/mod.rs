//! Names what a file or a field of a request contains, by its content: what is read, and also what is not.
//!
//! `formats.json` lists the formats that are not read, for this reader and for Python's; `tests/data/recognize` holds both
//! to the same answers.

mod formats;
mod modules;
mod protobuf;

pub use self::{formats::content_name, protobuf::FileKind};
pub(crate) use self::{
    formats::{decoded, most_unpacked, name_of, name_of_zip, unpacked},
    modules::{MAX_MODULES, TextModule, modules_of, named_module, named_text, with_header},
    protobuf::inner_module,
};
