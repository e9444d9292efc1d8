/// Converts a count of a batch, which limits keep far below `u32::MAX`.
pub(super) fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Maximum number of letters for the nodes of a description; the rest is left out.
const NODE_LETTERS: usize = 40;

/// Appends nodes to a description: `first` before the first of them, and commas between them.
pub(super) fn append_nodes(text: &mut String, first: &str, nodes: impl Iterator<Item = String>) {
    let start = text.len();
    for (position, node) in nodes.enumerate() {
        if text.len() - start > NODE_LETTERS {
            text.push_str(", …");
            break;
        }
        text.push_str(if position == 0 { first } else { ", " });
        text.push_str(&node);
    }
}

/// Writes numbers separated by commas.
pub(super) fn joined<T: ToString>(numbers: &[T]) -> String {
    numbers
        .iter()
        .map(T::to_string)
        .collect::<Vec<_>>()
        .join(",")
}
