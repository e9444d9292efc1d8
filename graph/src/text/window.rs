use hlorank_proto::xla::{ConvolutionDimensionNumbers, Window, WindowDimension};

use crate::{GraphError, syntax::Lexer};

/// The defaults of a dimension of a window.
const DIMENSION: WindowDimension = WindowDimension {
    size: 1,
    stride: 1,
    padding_low: 0,
    padding_high: 0,
    window_dilation: 1,
    base_dilation: 1,
    window_reversal: false,
};

/// A part of a window, such as `stride=2x2`: one value per dimension.
struct Part<'a> {
    start: usize,
    key: &'a str,
    values_start: usize,
    values: &'a str,
}

/// Reads `{size=3x3 stride=2x2 pad=0_1x0_1}`, in any order.
pub(super) fn window(lexer: &mut Lexer<'_>) -> Result<Window, GraphError> {
    lexer.expect("{")?;
    // The number of dimensions follows from `size`, which may come last, so the parts are read
    // twice.
    let start = lexer.position();
    let mut dimensions = vec![DIMENSION; size(lexer)?];
    lexer.return_to(start);
    while !lexer.eat("}") {
        let part = Part::read(lexer)?;
        if part.count() != dimensions.len() {
            lexer.return_to(part.values_start);
            return Err(lexer.unexpected("as many values as `size` has"));
        }
        for (dimension, value) in dimensions.iter_mut().zip(part.values.split('x')) {
            part.set(dimension, value, lexer)?;
        }
    }
    Ok(Window { dimensions })
}

/// Returns the number of values of `size`, which may be the last part of a window; 0 without it.
fn size(lexer: &mut Lexer<'_>) -> Result<usize, GraphError> {
    while !matches!(lexer.peek(), b'}' | 0) {
        let part = Part::read(lexer)?;
        if part.key == "size" {
            return Ok(part.count());
        }
    }
    Ok(0)
}

impl<'a> Part<'a> {
    fn read(lexer: &mut Lexer<'a>) -> Result<Self, GraphError> {
        let start = lexer.position();
        let key = lexer.word();
        lexer.expect("=")?;
        let values_start = lexer.position();
        let values = lexer.pattern()?;
        Ok(Self {
            start,
            key,
            values_start,
            values,
        })
    }

    /// Returns the number of values.
    fn count(&self) -> usize {
        self.values.split('x').count()
    }

    /// Sets what the part says of a dimension to `value`.
    fn set(
        &self,
        dimension: &mut WindowDimension,
        value: &str,
        lexer: &mut Lexer<'_>,
    ) -> Result<(), GraphError> {
        let number = |value| lexer.parse(value, self.values_start);
        match self.key {
            "size" => dimension.size = number(value)?,
            "stride" => dimension.stride = number(value)?,
            "pad" => {
                (dimension.padding_low, dimension.padding_high) =
                    low_and_high(lexer, value, self.values_start)?;
            }
            // XLA dilates the left operand, which is the base, and the right one, which is the
            // window.
            "lhs_dilate" => dimension.base_dilation = number(value)?,
            "rhs_dilate" => dimension.window_dilation = number(value)?,
            "rhs_reversal" => dimension.window_reversal = number(value)? == 1,
            _ => {
                lexer.return_to(self.start);
                return Err(lexer.unexpected(
                    "`size`, `stride`, `pad`, `lhs_dilate`, `rhs_dilate` or `rhs_reversal`",
                ));
            }
        }
        Ok(())
    }
}

/// Parses the padding `1_2` of one dimension. A second `_` and the text after it are ignored.
pub(super) fn low_and_high(
    lexer: &Lexer<'_>,
    padding: &str,
    position: usize,
) -> Result<(i64, i64), GraphError> {
    let mut parts = padding.split('_');
    let mut next = || lexer.parse(parts.next().unwrap_or_default(), position);
    Ok((next()?, next()?))
}

/// Reads `b01f_01io->b01f`: the roles of the dimensions of input, kernel and output, in order.
pub(super) fn dimension_labels(
    lexer: &mut Lexer<'_>,
) -> Result<ConvolutionDimensionNumbers, GraphError> {
    let position = lexer.position();
    let labels = lexer.pattern()?;
    let Some([input, kernel, output]) = split_labels(labels) else {
        lexer.return_to(position);
        return Err(lexer.unexpected("dimension labels such as `b01f_01io->b01f`"));
    };
    Ok(ConvolutionDimensionNumbers {
        input_batch_dimension: dimension_of(input, 'b'),
        input_feature_dimension: dimension_of(input, 'f'),
        input_spatial_dimensions: spatial(input),
        kernel_input_feature_dimension: dimension_of(kernel, 'i'),
        kernel_output_feature_dimension: dimension_of(kernel, 'o'),
        kernel_spatial_dimensions: spatial(kernel),
        output_batch_dimension: dimension_of(output, 'b'),
        output_feature_dimension: dimension_of(output, 'f'),
        output_spatial_dimensions: spatial(output),
    })
}

/// Splits `b01f_01io->b01f`; returns `None` if a part is missing.
fn split_labels(labels: &str) -> Option<[&str; 3]> {
    let (operands, output) = labels.split_once("->")?;
    let (input, kernel) = operands.split_once('_')?;
    Some([input, kernel, output])
}

/// Returns the position of a label.
fn dimension_of(labels: &str, label: char) -> i64 {
    // A label that is missing leaves the number at protobuf's default. If that makes two labels
    // share a dimension, the check of the convolution refuses it.
    labels
        .find(label)
        .and_then(|position| i64::try_from(position).ok())
        .unwrap_or(0)
}

/// Returns the positions of the labels 0, 1, 2 and so on.
fn spatial(labels: &str) -> Vec<i64> {
    // Spatial dimensions are labelled from 0 without a gap, wherever the labels stand, so their
    // number is enough.
    let count = labels.chars().filter(char::is_ascii_digit).count();
    ('0'..='9')
        .take(count)
        .map(|label| dimension_of(labels, label))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_defaults() {
        let read = |text| window(&mut Lexer::new(text)).unwrap().dimensions;
        assert_eq!(read("{}"), []);
        assert_eq!(
            read("{size=3x5}"),
            [3, 5].map(|size| WindowDimension { size, ..DIMENSION })
        );
        let padded = WindowDimension {
            padding_low: -1,
            padding_high: 2,
            ..DIMENSION
        };
        assert_eq!(read("{size=1 pad=-1_2}"), [padded]);
        let all = WindowDimension {
            size: 2,
            stride: 3,
            padding_low: 4,
            padding_high: 5,
            base_dilation: 6,
            window_dilation: 7,
            window_reversal: true,
        };
        let text = "{size=2 stride=3 pad=4_5 lhs_dilate=6 rhs_dilate=7 rhs_reversal=1}";
        assert_eq!(read(text), [all]);
        let text = "{rhs_reversal=1 pad=4_5 lhs_dilate=6 stride=3 size=2 rhs_dilate=7}";
        assert_eq!(read(text), [all]);
    }

    #[test]
    fn labels_give_positions() {
        let numbers = dimension_labels(&mut Lexer::new("f1b0_1io0->0b1f")).unwrap();
        assert_eq!(
            (
                numbers.input_feature_dimension,
                numbers.input_batch_dimension
            ),
            (0, 2)
        );
        assert_eq!(numbers.input_spatial_dimensions, [3, 1]);
        assert_eq!(
            (
                numbers.kernel_input_feature_dimension,
                numbers.kernel_output_feature_dimension
            ),
            (1, 2)
        );
        assert_eq!(numbers.kernel_spatial_dimensions, [3, 0]);
        assert_eq!(
            (
                numbers.output_batch_dimension,
                numbers.output_feature_dimension
            ),
            (1, 3)
        );
    }
}
