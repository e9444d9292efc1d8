//! The fuzz targets: one file for every kind of input.

mod configurations;
mod hlo_module;
mod hlo_text;
mod manifest;
mod npz;
mod recognize;
mod request;
mod tuning_data;

pub use self::{
    configurations::CONFIGURATIONS, hlo_module::HLO_MODULE, hlo_text::HLO_TEXT, manifest::MANIFEST,
    npz::NPZ, recognize::RECOGNIZE, request::REQUEST, tuning_data::TUNING_DATA,
};
