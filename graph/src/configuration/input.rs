use crate::Element;

/// The model input `config`: dense, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigInput {
    /// `[rows, nodes, width]` for a kind that sets nodes, else `[rows, width]`.
    pub shape: Vec<usize>,
    /// As many values as the shape has places.
    pub values: ConfigValues,
}

/// Values of a [`ConfigInput`], of the element type of its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum ConfigValues {
    /// 32-bit floating point.
    Float32(Vec<f32>),
    /// 64-bit integers.
    Int64(Vec<i64>),
}

impl ConfigValues {
    /// No values of this type yet.
    #[must_use]
    pub fn new(element: Element) -> Self {
        match element {
            Element::Float32 => Self::Float32(Vec::new()),
            Element::Int64 => Self::Int64(Vec::new()),
        }
    }

    /// The floating-point values; `None` if the element type is another.
    pub fn float32(&mut self) -> Option<&mut Vec<f32>> {
        match self {
            Self::Float32(values) => Some(values),
            Self::Int64(_) => None,
        }
    }

    /// The integers; `None` if the element type is another.
    pub fn int64(&mut self) -> Option<&mut Vec<i64>> {
        match self {
            Self::Int64(values) => Some(values),
            Self::Float32(_) => None,
        }
    }
}
