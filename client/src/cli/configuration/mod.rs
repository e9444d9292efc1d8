//! Configurations as people write and read them.

mod form;
mod short;

pub(crate) use form::{ConfigurationForm, read};
pub(crate) use short::short;
