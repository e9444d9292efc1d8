//! The fuzz targets: one file for every kind of input.

mod configurations;
mod decision_value;
mod hlo_module;
mod hlo_text;
mod manifest;
mod npz;
mod recognize;
mod request;
mod tuning_data;

pub use self::{
    configurations::CONFIGURATIONS, decision_value::DECISION_VALUE, hlo_module::HLO_MODULE,
    hlo_text::HLO_TEXT, manifest::MANIFEST, npz::NPZ, recognize::RECOGNIZE, request::REQUEST,
    tuning_data::TUNING_DATA,
};
