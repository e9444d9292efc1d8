//! The fuzz targets: one file for every kind of input.

mod delta_configurations;
mod hlo_module;
mod hlo_text;
mod manifest;
mod npz;
mod packed_configurations;
mod readable_configurations;
mod recognize;
mod request;
mod tuning_data;

pub use self::{
    delta_configurations::DELTA_CONFIGURATIONS, hlo_module::HLO_MODULE, hlo_text::HLO_TEXT,
    manifest::MANIFEST, npz::NPZ, packed_configurations::PACKED_CONFIGURATIONS,
    readable_configurations::READABLE_CONFIGURATIONS, recognize::RECOGNIZE, request::REQUEST,
    tuning_data::TUNING_DATA,
};
