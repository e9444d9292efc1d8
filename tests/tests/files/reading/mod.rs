//! Modules, texts and files are read as the reference reads them, or rejected with the place of the error.

mod bad_modules;
mod hlo_text;
mod reference_features;
mod tpugraphs_files;
