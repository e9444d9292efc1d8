use crate::{
    ConfigurationError, Limits,
    configuration::{
        checks::{check_count, check_size},
        distinct::SliceSet,
    },
};

/// Configurations of one graph of a feature set: the row of columns of every node.
///
/// Equal rows are stored once, so that configurations are equal if their row numbers are, whatever form they were sent in.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeFeatureBatch {
    configs: usize,
    nodes: usize,
    columns: usize,
    /// `[rows, columns]` distinct rows in the order of their first use.
    rows: Vec<f32>,
    /// `[configs, nodes]` number of each node's row.
    numbers: Vec<u32>,
}

impl NodeFeatureBatch {
    /// Makes a batch of `[configs, nodes, columns]` values.
    pub fn from_values(
        [nodes, columns]: [usize; 2],
        values: &[f32],
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        let configs = values
            .len()
            .checked_div(nodes.saturating_mul(columns))
            .unwrap_or_default();
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        Self::from_bytes(configs, [nodes, columns], &bytes, limits)
    }

    /// Makes a batch of `[configs, nodes, columns]` little-endian values.
    pub(super) fn from_bytes(
        configs: usize,
        [nodes, columns]: [usize; 2],
        values: &[u8],
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        check_shape(configs, [nodes, columns], limits)?;
        let row_bytes = columns * size_of::<f32>();
        let expected = configs * nodes * row_bytes;
        check_count("features (in bytes)", values.len(), expected)?;
        let mut rows = DistinctRows::new(columns, configs * nodes);
        let mut numbers = Vec::with_capacity(configs * nodes);
        for (place, row) in values.chunks_exact(row_bytes).enumerate() {
            let number = rows.insert(row).map_err(|column| {
                let config = place / nodes;
                let node = place % nodes;
                not_finite(&format!("configuration {config}, node {node}"), column)
            })?;
            numbers.push(number);
        }
        Ok(Self {
            configs,
            nodes,
            columns,
            rows: rows.into_values(),
            numbers,
        })
    }

    /// Makes a batch of a table of `[rows, columns]` little-endian values and `[configs, nodes]` row numbers.
    pub(super) fn from_table(
        configs: usize,
        [nodes, columns]: [usize; 2],
        (table, indices): (&[u8], &[u8]),
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        check_shape(configs, [nodes, columns], limits)?;
        let index_bytes = configs * nodes * size_of::<u32>();
        check_count("row_indices (in bytes)", indices.len(), index_bytes)?;
        let row_bytes = columns * size_of::<f32>();
        let expected = table.len().next_multiple_of(row_bytes);
        check_count("rows (in bytes)", table.len(), expected)?;
        let entries = table.len() / row_bytes;
        // The number of each row of the table among the distinct ones.
        let mut number_of_entry = vec![UNUSED; entries];
        let mut rows = DistinctRows::new(columns, entries);
        let mut numbers = Vec::with_capacity(configs * nodes);
        let (quads, _) = indices.as_chunks::<4>();
        for (place, quad) in quads.iter().enumerate() {
            let index = u32::from_le_bytes(*quad);
            let entry = index as usize;
            let Some(number) = number_of_entry.get_mut(entry) else {
                return Err(ConfigurationError::IndexOutsideTable {
                    config: place / nodes,
                    slot: place % nodes,
                    index,
                    entries,
                });
            };
            // Rows of a table may be equal or unused. They are read at their first use, so that the
            // numbers are in the order of the uses, as they are for the dense form of the same
            // configurations.
            if *number == UNUSED {
                let row = &table[entry * row_bytes..][..row_bytes];
                let inserted = rows.insert(row);
                *number = inserted
                    .map_err(|column| not_finite(&format!("row {index} of the table"), column))?;
            }
            numbers.push(*number);
        }
        Ok(Self {
            configs,
            nodes,
            columns,
            rows: rows.into_values(),
            numbers,
        })
    }

    /// Number of configurations; at least 1.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a batch has at least one configuration"
    )]
    pub fn len(&self) -> usize {
        self.configs
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Number of columns of a node.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The `[rows, columns]` distinct rows.
    pub fn rows(&self) -> &[f32] {
        &self.rows
    }

    /// The number of each node's row in a configuration.
    pub fn numbers(&self, config: usize) -> &[u32] {
        &self.numbers[config * self.nodes..][..self.nodes]
    }

    /// The `[nodes, columns]` values of a configuration.
    pub fn values(&self, config: usize) -> impl Iterator<Item = f32> {
        self.node_rows(config).flatten().copied()
    }

    /// The row of each node in a configuration.
    pub fn node_rows(&self, config: usize) -> impl Iterator<Item = &[f32]> {
        self.numbers(config).iter().map(|&number| self.row(number))
    }

    /// Bytes that the batch takes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.rows) + size_of_val(&*self.numbers)
    }

    fn row(&self, number: u32) -> &[f32] {
        &self.rows[number as usize * self.columns..][..self.columns]
    }

    /// Copies the configurations of these numbers, which must be below the length.
    #[must_use]
    pub fn select(&self, configs: &[usize]) -> Self {
        let mut number_of_row = vec![UNUSED; self.rows.len() / self.columns];
        let mut rows = Vec::new();
        let mut numbers = Vec::with_capacity(configs.len() * self.nodes);
        let mut next = 0;
        // Rows are numbered anew by their first use, as in a batch that was read with these
        // configurations alone.
        for &row in configs.iter().flat_map(|&config| self.numbers(config)) {
            let number = &mut number_of_row[row as usize];
            if *number == UNUSED {
                *number = next;
                next += 1;
                rows.extend_from_slice(self.row(row));
            }
            numbers.push(*number);
        }
        Self {
            configs: configs.len(),
            rows,
            numbers,
            ..*self
        }
    }
}

/// Checks the sizes of a batch before memory is taken for it.
fn check_shape(
    configs: usize,
    [nodes, columns]: [usize; 2],
    limits: &Limits,
) -> Result<(), ConfigurationError> {
    check_size(configs, nodes.saturating_mul(columns), limits)?;
    if columns == 0 || nodes == 0 {
        Err(ConfigurationError::NoColumns)
    } else {
        Ok(())
    }
}

/// No table has this many rows.
const UNUSED: u32 = u32::MAX;

/// Distinct rows of columns, by their bits.
struct DistinctRows {
    known: SliceSet<u32>,
    bits: Vec<u32>,
}

impl DistinctRows {
    fn new(columns: usize, most: usize) -> Self {
        Self {
            known: SliceSet::new(columns, most),
            bits: Vec::with_capacity(columns),
        }
    }

    /// Returns the number of a row of little-endian values, with 0 for −0. Fails with the number of
    /// a column that is not finite.
    fn insert(&mut self, row: &[u8]) -> Result<u32, usize> {
        let (quads, _) = row.as_chunks::<4>();
        let values = quads.iter().map(|quad| f32::from_le_bytes(*quad));
        // Rows are equal if their bits are, because a float is neither hashed nor always equal to
        // itself. The sum with 0 turns −0, whose bits differ from those of 0, into 0.
        self.bits.clear();
        self.bits
            .extend(values.map(|value| (value + 0.0).to_bits()));
        let is_refused = |&bits: &u32| !f32::from_bits(bits).is_finite();
        match self.bits.iter().position(is_refused) {
            Some(column) => Err(column),
            None => Ok(self.known.insert(&self.bits).0),
        }
    }

    /// Returns the rows by number.
    fn into_values(self) -> Vec<f32> {
        self.known
            .into_flat()
            .into_iter()
            .map(f32::from_bits)
            .collect()
    }
}

/// Returns the error of a value that is not finite.
fn not_finite(place: &str, column: usize) -> ConfigurationError {
    ConfigurationError::NotFinite {
        what: format!("{place}, column {column}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(values: &[f32]) -> Result<NodeFeatureBatch, ConfigurationError> {
        NodeFeatureBatch::from_values([2, 2], values, &Limits::default())
    }

    #[test]
    fn equal_rows_are_stored_once() {
        let batch = batch(&[1.0, 2.0, 0.0, 4.0, -0.0, 4.0, 1.0, 2.0]).unwrap();
        assert_eq!((batch.len(), batch.rows()), (2, &[1.0, 2.0, 0.0, 4.0][..]));
        assert_eq!(batch.bytes(), (4 + 4) * size_of::<f32>());
        assert_eq!([batch.numbers(0), batch.numbers(1)], [[0, 1], [1, 0]]);
        assert!(batch.values(1).eq([0.0, 4.0, 1.0, 2.0]));
    }

    #[test]
    fn a_selection_is_the_batch_of_what_it_selects() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1.0, 2.0, 7.0, 8.0, 5.0, 6.0];
        let expected = batch(&[&values[8..], &values[..4], &values[8..]].concat()).unwrap();
        assert_eq!(batch(&values).unwrap().select(&[2, 0, 2]), expected);
    }

    #[test]
    fn an_index_is_inside_the_table() {
        let rows = [1.0_f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes);
        let indices = |indices: [u32; 4]| indices.map(u32::to_le_bytes).concat();
        let read = |rows: &[u8], indices: &[u8]| {
            NodeFeatureBatch::from_table(2, [2, 2], (rows, indices), &Limits::default())
        };
        assert_eq!(
            read(rows.as_flattened(), &indices([1, 0, 1, 1])),
            batch(&[3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 3.0, 4.0])
        );
        // An empty table has no row 0.
        assert!(matches!(
            read(&[], &indices([0; 4])),
            Err(ConfigurationError::IndexOutsideTable { .. })
        ));
    }
}
