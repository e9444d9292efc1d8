use crate::v1::{config_batch, rank_configs_request};

/// The candidates of a lone call as a batch of a stream, which has the same forms.
impl From<rank_configs_request::Configs> for config_batch::Configs {
    fn from(configs: rank_configs_request::Configs) -> Self {
        use rank_configs_request::Configs;
        match configs {
            Configs::LayoutConfigs(message) => Self::LayoutConfigs(message),
            Configs::PackedLayoutConfigs(message) => Self::PackedLayoutConfigs(message),
            Configs::DeltaLayoutConfigs(message) => Self::DeltaLayoutConfigs(message),
            Configs::TileConfigs(message) => Self::TileConfigs(message),
            Configs::PackedTileConfigs(message) => Self::PackedTileConfigs(message),
        }
    }
}
