use std::{iter::once, sync::Arc};

use foldhash::HashMap;
use ort::{session::SessionOutputs, value::TensorRef};
use parking_lot::Mutex;

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
        let tensors: Vec<_> = names
            .iter()
            .map(|name| outputs[name.as_str()].try_extract_tensor::<f32>())
            .collect::<Result<_, _>>()?;
        let shapes: Shapes = tensors
            .iter()
            .map(|(shape, _)| rest_of_shape(shape))
            .collect();
        let sizes: Vec<usize> = shapes.iter().map(|shape| shape.iter().product()).collect();
        if let Some(wrong) = tensors
            .iter()
            .zip(&sizes)
            .position(|((_, values), size)| values.len() != size * segments)
        {
            let name = &names[wrong];
            return Err(ort::Error::new(format!(
                "output `{name}` does not have one part for each of {segments} segments"
            )));
        }
        let of_segment = |segment| {
            let parts = tensors.iter().zip(&sizes);
            let parts = parts.map(|((_, values), &size)| &values[segment * size..][..size]);
            Self {
                shapes: Arc::clone(&shapes),
                values: parts.collect::<Vec<_>>().concat().into(),
            }
        };
        Ok((0..segments).map(of_segment).collect())
    }

    /// The values of all tensors.
    #[must_use]
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
    values: Vec<std::borrow::Cow<'a, [f32]>>,
}

impl<'a> RowTensors<'a> {
    /// `segment` is the number of each row's segment.
    pub(super) fn new(tensors: &'a [SegmentTensors], segment: &[i64]) -> Self {
        let shapes = |rows: usize| {
            let shapes = tensors
                .first()
                .map(|tensors| Arc::clone(&tensors.shapes))
                .into_iter();
            shapes
                .flat_map(|shapes| shapes.to_vec())
                .map(|shape| once(rows).chain(shape).collect())
                .collect()
        };
        if let [lone] = tensors {
            return Self {
                shapes: shapes(1),
                values: lone.parts().map(Into::into).collect(),
            };
        }
        let parts: Vec<Vec<&[f32]>> = tensors
            .iter()
            .map(|tensors| tensors.parts().collect())
            .collect();
        let of_rows = |tensor: usize| {
            let rows = segment
                .iter()
                .filter_map(|&segment| parts.get(usize::try_from(segment).ok()?));
            rows.map(|parts| parts[tensor])
                .collect::<Vec<_>>()
                .concat()
                .into()
        };
        let count = parts.first().map_or(0, Vec::len);
        Self {
            shapes: shapes(segment.len()),
            values: (0..count).map(of_rows).collect(),
        }
    }

    /// The tensors as ONNX Runtime takes them.
    pub(super) fn values(&self) -> impl Iterator<Item = ort::Result<TensorRef<'_, f32>>> {
        let values = self.values.iter().zip(&self.shapes);
        values.map(|(values, shape)| TensorRef::from_array_view((shape.as_slice(), &**values)))
    }
}

fn rest_of_shape(shape: &[i64]) -> Vec<usize> {
    shape
        .iter()
        .skip(1)
        .map(|&size| usize::try_from(size).unwrap_or_default())
        .collect()
}
