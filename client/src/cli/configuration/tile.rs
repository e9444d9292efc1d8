//! Tiles: JSON and random draws.

use fastrand::Rng;
use hlorank_client::v1::{self, config_batch::Configs};
use hlorank_graph::{
    ConfigurationError, Configurations, EncodedBatch, Task, TileBatch, TileConfiguration,
};
use serde::{Deserialize, Serialize};

use crate::cli::input::FILE_LIMITS;

/// One tile as JSON.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TileForm {
    #[serde(default, rename = "kernel_bounds")]
    kernel: Vec<i64>,
    #[serde(default, rename = "output_bounds")]
    output: Vec<i64>,
    #[serde(default, rename = "input_bounds")]
    input: Vec<i64>,
}

/// A list of bounds of a tile.
type Bounds = fn(TileConfiguration<'_>) -> &[i64];

/// Converts tiles from JSON.
pub(super) fn from_forms(forms: &[TileForm]) -> Result<Configurations, ConfigurationError> {
    let message = v1::TileConfigs {
        configs: forms.iter().map(v1::TileConfig::from).collect(),
    };
    let batch = EncodedBatch::try_from(&Configs::TileConfigs(message))?;
    batch.read(Task::Tile, &[], &FILE_LIMITS)
}

/// Returns random tiles, each bound of which is taken from any of these tiles.
pub(super) fn recombine(
    own: &TileBatch,
    count: usize,
    random: &mut Rng,
) -> Result<Configurations, ConfigurationError> {
    let mut batch = TileBatch::default();
    for _ in 0..count {
        // One tile decides how many bounds there are. Each bound is then that of any tile.
        let whole = own.get(random.usize(..own.len()));
        let mut bounds = |list: Bounds| random_bounds(own, list, list(whole.view()), random);
        let tile = TileConfiguration {
            kernel_bounds: &bounds(|tile| tile.kernel_bounds),
            output_bounds: &bounds(|tile| tile.output_bounds),
            input_bounds: &bounds(|tile| tile.input_bounds),
        };
        batch.push(tile, &FILE_LIMITS)?;
    }
    Ok(Configurations::Tile(batch))
}

/// Returns random bounds of a list, as many as `whole` has.
fn random_bounds(own: &TileBatch, list: Bounds, whole: &[i64], random: &mut Rng) -> Vec<i64> {
    let bound = |(position, &bound): (usize, &i64)| {
        let other = own.get(random.usize(..own.len()));
        // The other tile may have fewer bounds.
        list(other.view()).get(position).copied().unwrap_or(bound)
    };
    whole.iter().enumerate().map(bound).collect()
}

impl TileForm {
    pub(super) fn of(tile: TileConfiguration<'_>) -> Self {
        Self {
            kernel: tile.kernel_bounds.to_vec(),
            output: tile.output_bounds.to_vec(),
            input: tile.input_bounds.to_vec(),
        }
    }
}

impl From<&TileForm> for v1::TileConfig {
    fn from(form: &TileForm) -> Self {
        Self {
            kernel_bounds: form.kernel.clone(),
            output_bounds: form.output.clone(),
            input_bounds: form.input.clone(),
        }
    }
}
