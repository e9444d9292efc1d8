//! One configuration as bytes, for whoever keeps configurations.

use prost::encoding::{decode_varint, encode_varint};

use super::{
    Configurations, FusionBatch, LayoutBatchBuilder, LayoutEntry, NodeFeatureBatch, Task,
    TileBatch, TileConfiguration,
};
use crate::{ConfigurationError, Limits};

impl Configurations {
    /// Writes one configuration. Configurations of one graph have equal bytes if and only if they are equal.
    ///
    /// A layout is the entry of each slot, its three numbers of 17 bits as one varint. A tile is a byte whose bits say which
    /// lists have bounds, then for each of these its length and its bounds as varints. A fusion is the number of slots as a
    /// varint, and its bits. Columns of a feature set are the numbers of nodes and columns as varints, and `[nodes, columns]` f32.
    #[must_use]
    pub fn canonical(&self, config: usize) -> Vec<u8> {
        match self {
            Self::Tile(batch) => batch.encoded(config).to_vec(),
            Self::Layout(batch) => {
                let mut bytes = Vec::with_capacity(batch.slots());
                for slot in 0..batch.slots() {
                    encode_varint(batch.entry(config, slot).bits(), &mut bytes);
                }
                bytes
            }
            Self::Fusion(batch) => {
                let mut bytes = Vec::new();
                encode_varint(batch.slots() as u64, &mut bytes);
                bytes.extend_from_slice(batch.row(config));
                bytes
            }
            Self::FeatureSet(batch) => {
                let mut bytes = Vec::new();
                encode_varint(batch.nodes() as u64, &mut bytes);
                encode_varint(batch.columns() as u64, &mut bytes);
                bytes.extend(batch.values(config).flat_map(f32::to_le_bytes));
                bytes
            }
        }
    }

    /// Reads configurations of one graph that [`Self::canonical`] wrote, at least one.
    pub fn from_canonical<'a>(
        task: Task,
        configs: impl IntoIterator<Item = &'a [u8]>,
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        match task {
            Task::Tile => tiles(configs, limits).map(Self::Tile),
            Task::Layout => layouts(configs, limits),
            Task::Fusion => fusions(configs, limits).map(Self::Fusion),
            Task::FeatureSet => node_features(configs, limits).map(Self::FeatureSet),
        }
    }
}

fn tiles<'a>(
    configs: impl IntoIterator<Item = &'a [u8]>,
    limits: &Limits,
) -> Result<TileBatch, ConfigurationError> {
    let mut batch = TileBatch::default();
    for mut config in configs {
        let present = number(&mut config)?;
        let mut lists = [Vec::new(), Vec::new(), Vec::new()];
        for (bit, list) in lists
            .iter_mut()
            .enumerate()
            .filter(|(bit, _)| present >> bit & 1 == 1)
        {
            let count = number(&mut config)?;
            if count > config.len() as u64 {
                return Err(malformed(&format!("list {bit} of a tile ends early")));
            }
            for _ in 0..count {
                list.push(number(&mut config)?.cast_signed());
            }
        }
        if !config.is_empty() {
            return Err(malformed("a tile has bytes after its bounds"));
        }
        let [kernel_bounds, output_bounds, input_bounds] = lists.each_ref().map(Vec::as_slice);
        batch.push(
            TileConfiguration {
                kernel_bounds,
                output_bounds,
                input_bounds,
            },
            limits,
        )?;
    }
    if batch.is_empty() {
        Err(ConfigurationError::Empty)
    } else {
        Ok(batch)
    }
}

fn layouts<'a>(
    configs: impl IntoIterator<Item = &'a [u8]>,
    limits: &Limits,
) -> Result<Configurations, ConfigurationError> {
    let mut builder: Option<LayoutBatchBuilder> = None;
    let mut entries = Vec::new();
    for mut config in configs {
        entries.clear();
        while !config.is_empty() {
            let slot = entries.len();
            entries.push(LayoutEntry::from_bits(number(&mut config)?, || {
                format!("slot {slot}")
            })?);
        }
        let builder =
            builder.get_or_insert_with(|| LayoutBatchBuilder::new(entries.len(), *limits));
        builder.push(&entries)?;
    }
    let batch = builder.ok_or(ConfigurationError::Empty)?.build()?;
    Ok(Configurations::Layout(batch))
}

fn fusions<'a>(
    configs: impl IntoIterator<Item = &'a [u8]>,
    limits: &Limits,
) -> Result<FusionBatch, ConfigurationError> {
    let (mut slots, mut count, mut fused) = (None, 0, Vec::new());
    for mut config in configs {
        let found = number(&mut config)?;
        if *slots.get_or_insert(found) != found {
            return Err(malformed("fusions have different numbers of slots"));
        }
        count += 1;
        fused.extend_from_slice(config);
    }
    let slots = usize::try_from(slots.unwrap_or_default()).unwrap_or(usize::MAX);
    FusionBatch::new(count, slots, fused, limits)
}

fn node_features<'a>(
    configs: impl IntoIterator<Item = &'a [u8]>,
    limits: &Limits,
) -> Result<NodeFeatureBatch, ConfigurationError> {
    let (mut shape, mut count, mut features) = (None, 0, Vec::new());
    for mut config in configs {
        let found = [number(&mut config)?, number(&mut config)?];
        if *shape.get_or_insert(found) != found {
            return Err(malformed(
                "configurations have different numbers of nodes or columns",
            ));
        }
        count += 1;
        features.extend_from_slice(config);
    }
    let shape = shape
        .unwrap_or_default()
        .map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    NodeFeatureBatch::from_bytes(count, shape, &features, limits)
}

fn number(bytes: &mut &[u8]) -> Result<u64, ConfigurationError> {
    decode_varint(bytes).map_err(|error| malformed(&error.to_string()))
}

fn malformed(detail: &str) -> ConfigurationError {
    ConfigurationError::Malformed {
        detail: detail.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn round_trip(configurations: &Configurations) -> Configurations {
        let bytes: Vec<Vec<u8>> = (0..configurations.len())
            .map(|each| configurations.canonical(each))
            .collect();
        let bytes = bytes.iter().map(Vec::as_slice);
        Configurations::from_canonical(configurations.task(), bytes, &Limits::default()).unwrap()
    }

    proptest! {
        #[test]
        fn tiles_come_back(tiles in vec([vec(any::<i64>(), 0..4), vec(any::<i64>(), 0..4), vec(any::<i64>(), 0..4)], 1..6)) {
            let mut batch = TileBatch::default();
            for [kernel_bounds, output_bounds, input_bounds] in &tiles {
                let tile = TileConfiguration { kernel_bounds, output_bounds, input_bounds };
                batch.push(tile, &Limits::default()).unwrap();
            }
            let all = Configurations::Tile(batch);
            prop_assert_eq!(round_trip(&all), all);
        }

        #[test]
        fn layouts_come_back(layouts in vec(vec(proptest::array::uniform3(0_u32..117_649), 3), 1..6)) {
            let mut builder = LayoutBatchBuilder::new(3, Limits::default());
            for layout in &layouts {
                let entry = |numbers: &[u32; 3]| LayoutEntry::from_numbers(*numbers, String::new).unwrap();
                builder.push(&layout.iter().map(entry).collect::<Vec<_>>()).unwrap();
            }
            let all = Configurations::Layout(builder.build().unwrap());
            prop_assert_eq!(round_trip(&all), all);
        }

        #[test]
        fn fusions_come_back(fused in vec(vec(any::<bool>(), 11), 1..6)) {
            let all = Configurations::Fusion(FusionBatch::from_bits(11, &fused, &Limits::default()).unwrap());
            prop_assert_eq!(round_trip(&all), all);
        }

        #[test]
        fn columns_of_a_feature_set_come_back(rows in vec(vec(-9.0_f32..9.0, 6), 1..6)) {
            let batch = NodeFeatureBatch::from_values([2, 3], &rows.concat(), &Limits::default()).unwrap();
            let all = Configurations::FeatureSet(batch);
            prop_assert_eq!(round_trip(&all), all);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..40)) {
            for task in Task::ALL {
                let read = Configurations::from_canonical(task, [bytes.as_slice()], &Limits::default());
                // A varint may have zeros at its end, so equal configurations are all that can be asked for.
                if let Ok(read) = read {
                    prop_assert_eq!(&round_trip(&read), &read);
                }
            }
        }
    }

    #[test]
    fn nothing_is_no_batch() {
        for task in Task::ALL {
            let read = Configurations::from_canonical(task, [], &Limits::default());
            assert_eq!(read, Err(ConfigurationError::Empty));
        }
    }
}
