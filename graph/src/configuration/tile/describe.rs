use super::TileConfiguration;
use crate::configuration::count::joined;

/// Describes a tile in a few words.
pub(super) fn describe(tile: TileConfiguration<'_>) -> String {
    let lists = [
        ("kernel", tile.kernel_bounds),
        ("output", tile.output_bounds),
        ("input", tile.input_bounds),
    ];
    let lists = lists.into_iter().filter(|(_, bounds)| !bounds.is_empty());
    let lists: Vec<String> = lists
        .map(|(name, bounds)| format!("{name} [{}]", joined(bounds)))
        .collect();
    if lists.is_empty() {
        "no bounds".to_owned()
    } else {
        lists.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lists_with_bounds_are_shown() {
        let tile = TileConfiguration {
            kernel_bounds: &[3, 1],
            output_bounds: &[8, 128],
            input_bounds: &[],
        };
        assert_eq!(describe(tile), "kernel [3,1] output [8,128]");
        let tile = TileConfiguration {
            kernel_bounds: &[],
            output_bounds: &[],
            input_bounds: &[],
        };
        assert_eq!(describe(tile), "no bounds");
    }
}
