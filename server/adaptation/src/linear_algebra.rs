//! Products and factors of small matrices, row-major, whose sums have a fixed order.

use hlorank_graph::pace;

use crate::statistics::scalar;

/// Number of sums that a processor adds up at the same time.
pub(super) const LANES: usize = 8;

/// Number of rows between two pauses, each of which takes at most some 20 microseconds.
const ROWS: usize = 4;

/// Returns the product of two vectors.
pub(super) fn dot(one: &[f64], other: &[f64]) -> f64 {
    // The partial sums do not depend on each other, so that the processor does not wait for one addition before the next.
    // Their order is fixed: an answer has the same bits every time.
    let mut lanes = [0.0; LANES];
    let (ones, rest_of_one) = one.as_chunks::<LANES>();
    let (others, rest_of_other) = other.as_chunks::<LANES>();
    for (one, other) in ones.iter().zip(others) {
        for lane in 0..LANES {
            lanes[lane] += one[lane] * other[lane];
        }
    }
    let rest = rest_of_one.iter().zip(rest_of_other);
    for (lane, (one, other)) in lanes.iter_mut().zip(rest) {
        *lane += one * other;
    }
    // Sums of pairs are what vector registers add up, and round less than a chain of additions.
    let halves: [f64; LANES / 2] =
        std::array::from_fn(|lane| lanes[lane] + lanes[lane + LANES / 2]);
    (halves[0] + halves[2]) + (halves[1] + halves[3])
}

/// A lower triangle.
#[derive(Debug)]
pub(super) struct Triangle {
    size: usize,
    /// `[size, size]`, zero above the diagonal.
    rows: Vec<f64>,
}

/// A lower triangle for many products.
pub(super) struct TriangleOfEights {
    size: usize,
    /// The rows, eight at a time. Of those eight, it has their values in the first column, then in the second, and so on up to
    /// the diagonal of the last of them. A processor then adds up the products of several rows at a time.
    columns: Vec<[f64; LANES]>,
}

/// The inverse of the Cholesky factor L of a symmetric positive definite matrix A = L·Lᵀ.
pub(super) struct Factor {
    pub(super) inverse: Triangle,
    /// ln |A|.
    pub(super) log_determinant: f64,
}

impl Triangle {
    /// Returns the product with a vector.
    pub(super) fn reduce(&self, vector: &[f64]) -> Vec<f64> {
        (0..self.size)
            .map(|row| dot(&self.rows[row * self.size..][..=row], &vector[..=row]))
            .collect()
    }

    pub(super) fn of_eights(&self) -> TriangleOfEights {
        let size = self.size;
        // Each block of eight rows has eight columns more than the block before it.
        let mut columns = Vec::with_capacity((size + LANES) * size.div_ceil(LANES) / 2);
        for first in (0..size).step_by(LANES) {
            let last = (first + LANES).min(size);
            for column in 0..last {
                let mut values = [0.0; LANES];
                for (value, row) in values.iter_mut().zip(first..last) {
                    *value = self.rows[row * size + column];
                }
                columns.push(values);
            }
        }
        TriangleOfEights { size, columns }
    }

    /// Multiplies each column by a factor.
    pub(super) fn scale_columns(&mut self, factors: &[f64]) {
        for row in self.rows.chunks_exact_mut(self.size.max(1)) {
            row.iter_mut()
                .zip(factors)
                .for_each(|(value, factor)| *value *= factor);
        }
    }
}

impl TriangleOfEights {
    /// Returns the product with a vector.
    pub(super) fn reduce(&self, vector: &[f64]) -> Vec<f64> {
        let mut reduced = Vec::with_capacity(self.size + LANES);
        let mut left = &self.columns[..];
        while !left.is_empty() {
            // As in `of_eights`: eight rows have columns up to the diagonal of the last of them.
            let rows = (reduced.len() + LANES).min(self.size);
            let (columns, others) = left.split_at(rows);
            let mut sums = [0.0; LANES];
            for (column, factor) in columns.iter().zip(vector) {
                for (sum, value) in sums.iter_mut().zip(column) {
                    *sum += value * factor;
                }
            }
            reduced.extend(sums);
            left = others;
        }
        reduced.truncate(self.size);
        reduced
    }
}

impl Factor {
    /// Factors a `[size, size]` matrix, of which the lower triangle is read.
    pub(super) fn new(mut matrix: Vec<f64>, size: usize) -> Self {
        cholesky(&mut matrix, size);
        // |A| = |L|², and |L| is the product of its diagonal.
        let logarithms = diagonal(&matrix, size).map(|pivot| 2.0 * libm::log(pivot));
        Self {
            log_determinant: logarithms.sum(),
            inverse: Triangle {
                size,
                rows: inverse_of(&matrix, size),
            },
        }
    }

    /// Returns A⁻¹v.
    pub(super) fn solve(&self, vector: &[f64]) -> Vec<f64> {
        // A⁻¹ = L⁻ᵀ·L⁻¹. The product with the transpose adds up scaled rows, because columns are not contiguous.
        let Triangle { size, rows } = &self.inverse;
        let mut solved = vec![0.0; *size];
        for (row, reduced) in self.inverse.reduce(vector).into_iter().enumerate() {
            add_scaled(&mut solved[..=row], &rows[row * size..][..=row], reduced);
        }
        solved
    }

    /// Returns A⁻¹.
    pub(super) fn inverse(&self) -> Vec<f64> {
        // L⁻ᵀ·L⁻¹ is the sum of the products of each row of L⁻¹ with itself, which ends at the diagonal.
        let Triangle { size, rows } = &self.inverse;
        let mut inverse = vec![0.0; size * size];
        for row in pace::in_steps(ROWS, 0..*size) {
            let factor = &rows[row * size..][..=row];
            for (column, &value) in factor.iter().enumerate() {
                add_scaled(&mut inverse[column * size..][..=column], factor, value);
            }
        }
        // The sums above are those of the lower triangle, and the inverse is symmetric.
        for row in 0..*size {
            for column in 0..row {
                inverse[column * size + row] = inverse[row * size + column];
            }
        }
        inverse
    }
}

/// Replaces the lower triangle of a `[size, size]` matrix by its Cholesky factor.
fn cholesky(matrix: &mut [f64], size: usize) {
    // Row by row, because a row needs only those above it, and both factors of a product are then contiguous.
    for row in pace::in_steps(ROWS, 0..size) {
        let first = row * size;
        for column in 0..=row {
            let other = column * size;
            let product = dot(&matrix[first..][..column], &matrix[other..][..column]);
            let left = matrix[first + column] - product;
            matrix[first + column] = if row == column {
                // Rounding may leave less than nothing of a row that others determine.
                left.max(f64::MIN_POSITIVE).sqrt()
            } else {
                left / matrix[other + column]
            };
        }
    }
}

/// Inverts a lower triangle.
fn inverse_of(triangle: &[f64], size: usize) -> Vec<f64> {
    let mut inverse = vec![0.0; size * size];
    // Forward substitution of all unit vectors at once: each row follows from the rows of the inverse above it.
    for row in pace::in_steps(ROWS, 0..size) {
        let (above, rest) = inverse.split_at_mut(row * size);
        let target = &mut rest[..=row];
        for (column, &value) in triangle[row * size..][..row].iter().enumerate() {
            add_scaled(
                &mut target[..=column],
                &above[column * size..][..=column],
                -value,
            );
        }
        let pivot = triangle[row * size + row];
        for value in target.iter_mut() {
            *value /= pivot;
        }
        target[row] = pivot.recip();
    }
    inverse
}

/// Returns the diagonal of a `[size, size]` matrix.
pub(super) fn diagonal(matrix: &[f64], size: usize) -> impl Iterator<Item = f64> {
    (0..size).map(move |row| matrix[row * size + row])
}

/// The variance of residuals around 0, given the deviation that is expected of them before they are known. That counts as much as
/// one of them.
pub(super) fn variance(residuals: &[f64], expected: f64) -> f64 {
    (expected * expected + dot(residuals, residuals)) / (1.0 + scalar(residuals.len()))
}

/// Adds values, each multiplied by a factor.
pub(super) fn add_scaled(sums: &mut [f64], values: &[f64], factor: f64) {
    sums.iter_mut()
        .zip(values)
        .for_each(|(sum, value)| *sum += factor * value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_inverts_its_matrix() {
        let size = 11;
        let matrix = |row: usize, column: usize| {
            let distance = f64::from(u32::try_from(row.abs_diff(column)).unwrap());
            (-distance / 3.0).exp() + if row == column { 0.1 } else { 0.0 }
        };
        let dense: Vec<f64> = (0..size * size)
            .map(|place| matrix(place / size, place % size))
            .collect();
        let factor = Factor::new(dense.clone(), size);
        let inverse = factor.inverse();
        for row in 0..size {
            let solved = factor.solve(&dense[row * size..][..size]);
            for column in 0..size {
                let unit = f64::from(u8::from(row == column));
                let product: f64 = (0..size)
                    .map(|place| dense[row * size + place] * inverse[place * size + column])
                    .sum();
                assert!((product - unit).abs() < 1e-12 && (solved[column] - unit).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_triangle_of_eights_has_the_same_products() {
        for size in [0, 1, 7, 8, 9, 27] {
            let value = |place: usize| f64::from(u32::try_from(place % 13).unwrap()) - 5.0;
            let mut triangle = Triangle {
                size,
                rows: (0..size * size).map(value).collect(),
            };
            for row in 0..size {
                triangle.rows[row * size..][row + 1..size].fill(0.0);
            }
            let vector: Vec<f64> = (0..size).map(|place| value(place * 3)).collect();
            assert_eq!(
                triangle.of_eights().reduce(&vector),
                triangle.reduce(&vector)
            );
        }
    }

    #[test]
    fn the_determinant_is_the_product_of_the_pivots() {
        let factor = Factor::new(vec![4.0, 2.0, 2.0, 3.0], 2);
        assert!((factor.log_determinant - 8_f64.ln()).abs() < 1e-14);
    }
}
