//! Figures of lists of numbers, whose sums have a fixed order.

/// The mean; 0 of no numbers.
#[expect(
    clippy::cast_precision_loss,
    reason = "there are far fewer than 2^53 numbers"
)]
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The numbers around their mean.
pub(crate) fn centered(mut values: Vec<f64>) -> Vec<f64> {
    let center = mean(&values);
    for value in &mut values {
        *value -= center;
    }
    values
}

/// The standard deviation.
pub(crate) fn deviation(values: &[f64]) -> f64 {
    let center = mean(values);
    let squares: Vec<f64> = values
        .iter()
        .map(|value| (value - center) * (value - center))
        .collect();
    mean(&squares).sqrt()
}

/// The squared distance of two points.
pub(crate) fn squared_distance(one: &[f64], other: &[f64]) -> f64 {
    one.iter()
        .zip(other)
        .map(|(one, other)| (one - other) * (one - other))
        .sum()
}
