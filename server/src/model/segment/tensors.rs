use std::{borrow::Cow, iter::once, sync::Arc};

use foldhash::{HashMap, HashMapExt};
use hlorank_graph::{ConfigInput, ConfigValues};
use ort::session::{SessionInputValue, SessionOutputs};
use parking_lot::Mutex;

use crate::model::sessions::view;

/// What `segment.onnx` computes of one segment.
#[derive(Clone)]
pub struct SegmentTensors {
    shapes: Shapes,
    /// The values of one tensor after the other.
    values: Arc<[f32]>,
}

/// The shape of each tensor of a segment, without the dimension of segments.
type Shapes = Arc<[Vec<usize>]>;

/// The shapes of tensors that were seen, by the padded size of the segment.
#[derive(Default)]
pub(super) struct KnownShapes(Mutex<HashMap<usize, Shapes>>);

impl KnownShapes {
    /// Returns tensors of these values, which [`SegmentTensors::values`] returned earlier; `None` if their shapes are not
    /// known yet.
    pub(super) fn tensors(&self, nodes: usize, values: Arc<[f32]>) -> Option<SegmentTensors> {
        let shapes = Arc::clone(self.0.lock().get(&nodes)?);
        Some(SegmentTensors { shapes, values })
    }

    /// Remembers the shapes of segments of `nodes` nodes.
    pub(super) fn learn(&self, nodes: usize, tensors: &[SegmentTensors]) {
        let Some(tensors) = tensors.first() else {
            return;
        };
        // The shapes depend on the padded size alone, so those of one segment are those of all.
        let mut known = self.0.lock();
        known
            .entry(nodes)
            .or_insert_with(|| Arc::clone(&tensors.shapes));
    }
}

impl SegmentTensors {
    /// Takes the outputs of a run apart by segment.
    pub(super) fn of_segments(
        outputs: &SessionOutputs<'_>,
        names: &[String],
        segments: usize,
    ) -> ort::Result<Vec<Self>> {
        let mut shapes = Vec::with_capacity(names.len());
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            let (shape, values) = outputs[name.as_str()].try_extract_tensor::<f32>()?;
            let of_segment = shape.iter().skip(1);
            let shape: Vec<usize> = of_segment
                .map(|&size| usize::try_from(size).unwrap_or_default())
                .collect();
            let size: usize = shape.iter().product();
            // The contract fixes neither the number nor the shapes of these outputs, so that
            // nothing has checked them before.
            if values.len() != size * segments {
                return Err(ort::Error::new(format!(
                    "output `{name}` does not have one part for each of {segments} segments"
                )));
            }
            shapes.push(shape);
            found.push((values, size));
        }
        let shapes: Shapes = shapes.into();
        let of_segment = |segment| {
            let parts = found
                .iter()
                .map(|(values, size)| &values[segment * size..][..*size]);
            Self {
                shapes: Arc::clone(&shapes),
                values: parts.collect::<Vec<_>>().concat().into(),
            }
        };
        Ok((0..segments).map(of_segment).collect())
    }

    /// The values of all tensors.
    pub fn values(&self) -> &Arc<[f32]> {
        &self.values
    }

    /// The values of each tensor.
    fn parts(&self) -> impl Iterator<Item = &[f32]> {
        let mut rest = &*self.values;
        self.shapes.iter().map(move |shape| {
            let (part, others) = rest.split_at(shape.iter().product());
            rest = others;
            part
        })
    }
}

/// The tensors of the segments of rows, as an encoder takes them: `[1, ...]` if all rows are of one segment, else
/// `[rows, ...]`.
pub(super) struct RowTensors<'a> {
    shapes: Vec<Vec<usize>>,
    values: Vec<Cow<'a, [f32]>>,
}

impl<'a> RowTensors<'a> {
    /// `segment` is the number of each row's segment.
    pub(super) fn new(tensors: &'a [SegmentTensors], segment: &[i64]) -> Self {
        // The shapes of all segments of an input are equal.
        let shapes_of = |rows: usize| {
            let shapes = tensors.iter().take(1).flat_map(|tensors| &*tensors.shapes);
            let shapes = shapes.map(|shape| once(rows).chain(shape.iter().copied()).collect());
            shapes.collect()
        };
        // The encoder broadcasts the tensors of one segment over its rows, which saves the copies.
        if let [lone] = tensors {
            return Self {
                shapes: shapes_of(1),
                values: lone.parts().map(Into::into).collect(),
            };
        }
        let parts = tensors.iter().map(|segment| segment.parts().collect());
        let parts: Vec<Vec<_>> = parts.collect();
        let of_rows = |tensor: usize| {
            let of_row = |segment: &i64| parts.get(usize::try_from(*segment).ok()?);
            let rows = segment.iter().filter_map(of_row);
            let rows: Vec<&[f32]> = rows.map(|parts| parts[tensor]).collect();
            rows.concat().into()
        };
        let count = parts.first().map_or(0, Vec::len);
        Self {
            shapes: shapes_of(segment.len()),
            values: (0..count).map(of_rows).collect(),
        }
    }

    /// The tensors as ONNX Runtime takes them.
    pub(super) fn values(&self) -> impl Iterator<Item = ort::Result<SessionInputValue<'_>>> {
        let values = self.values.iter().zip(&self.shapes);
        values.map(|(values, shape)| view(shape.as_slice(), values))
    }
}

/// The distinct entries of layouts, and the number of the entry of each node.
pub(super) struct Entries<'a> {
    /// `[entries, width]`.
    pub(super) distinct: Vec<i64>,
    pub(super) width: usize,
    /// `[rows, nodes]`.
    pub(super) numbers: Vec<i64>,
    pub(super) shape: &'a [usize],
}

/// The number of entries is a multiple of this, so that what is computed of an entry does not depend on their number.
const MULTIPLE: usize = 4;

impl<'a> Entries<'a> {
    /// Returns the entries of layouts `[rows, nodes, width]`; `None` of other configurations.
    pub(super) fn from_input(config: &'a ConfigInput) -> Option<Self> {
        let ConfigValues::Int64(values) = &config.values else {
            return None;
        };
        let [shape @ .., width] = config.shape.as_slice() else {
            return None;
        };
        let mut known: HashMap<&[i64], i64> = HashMap::new();
        let mut found = Self {
            distinct: Vec::new(),
            width: *width,
            numbers: Vec::new(),
            shape,
        };
        // An entry gets its number at its first occurrence, which is its place in `distinct`.
        for entry in values.chunks_exact(*width) {
            let next = i64::try_from(known.len()).ok()?;
            let number = *known.entry(entry).or_insert_with(|| {
                found.distinct.extend_from_slice(entry);
                next
            });
            found.numbers.push(number);
        }
        // The last entry is repeated.
        let last = found.distinct.len().checked_sub(found.width)?;
        while !found.len().is_multiple_of(MULTIPLE) {
            found.distinct.extend_from_within(last..last + found.width);
        }
        Some(found)
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.distinct.len() / self.width
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_entries_are_one_and_the_last_is_repeated() {
        let values = vec![1, 2, -2, -2, 1, 2, -2, -2, 3, 4, 1, 2];
        let config = ConfigInput {
            shape: vec![2, 3, 2],
            values: ConfigValues::Int64(values),
        };
        let found = Entries::from_input(&config).unwrap();
        assert_eq!(found.distinct, [1, 2, -2, -2, 3, 4, 3, 4]);
        assert_eq!(
            (found.numbers.as_slice(), found.shape),
            ([0, 1, 0, 1, 2, 0].as_slice(), [2, 3].as_slice())
        );
    }

    #[test]
    fn tiles_have_no_entries() {
        let config = ConfigInput {
            shape: vec![1, 2],
            values: ConfigValues::Float32(vec![1.0, 2.0]),
        };
        assert!(Entries::from_input(&config).is_none());
    }
}
