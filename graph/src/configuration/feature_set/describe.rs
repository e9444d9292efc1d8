use super::NodeFeatureBatch;

/// Maximum number of letters for the values of a node; the rest is left out.
const VALUE_LETTERS: usize = 48;

/// Describes a configuration in a few words: the values of the first node.
pub(super) fn describe(batch: &NodeFeatureBatch, config: usize) -> String {
    let mut text = format!("{} nodes; node 0: ", batch.nodes());
    let start = text.len();
    for (column, value) in batch.values(config).take(batch.columns()).enumerate() {
        if text.len() - start > VALUE_LETTERS {
            text.push_str(" …");
            break;
        }
        if column > 0 {
            text.push(' ');
        }
        text.push_str(&value.to_string());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    #[test]
    fn the_first_node_is_shown_and_many_columns_are_cut_short() {
        let text = |columns: u16| {
            let values: Vec<f32> = (0..2 * columns).map(f32::from).collect();
            let shape = [2, columns.into()];
            describe(
                &NodeFeatureBatch::from_values(shape, &values, &Limits::default()).unwrap(),
                0,
            )
        };
        assert_eq!(text(3), "2 nodes; node 0: 0 1 2");
        assert!(
            text(1000).ends_with(" …") && text(1000).len() < 90,
            "{}",
            text(1000)
        );
    }
}
