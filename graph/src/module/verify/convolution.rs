use hlorank_proto::xla::ConvolutionDimensionNumbers;

use super::{
    arrays::{Array, expect, expect_size},
    dimensions::{Distinct, expect_count, value},
    instruction::Instruction,
    reduction::window_size,
};
use crate::{ModuleFault, syntax::UNBOUNDED};

/// Which dimensions of a tensor are spatial, and which two are not.
struct Roles<'a> {
    what: &'static str,
    spatial: &'a [i64],
    others: [i64; 2],
}

/// Numbers of groups, at most one of which is above 1.
#[derive(Clone, Copy)]
struct Groups {
    features: i64,
    batch: i64,
}

/// Input, kernel and result agree with the dimension numbers, the window and the groups.
pub(super) fn convolution(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    let Some(numbers) = &instruction.proto.convolution_dimension_numbers else {
        return Ok(());
    };
    let (Some(input), Some(kernel)) = (instruction.array(0)?, instruction.array(1)?) else {
        return Ok(());
    };
    let Some(result) = instruction.result_array()? else {
        return Ok(());
    };
    let tensors = [input, kernel, result];
    let roles = roles(numbers);
    check_spatial(&roles, tensors)?;
    // Each dimension of the result has exactly one role, so every place is set below.
    let mut expected = vec![UNBOUNDED; result.rank()];
    place_others(&mut expected, instruction, &roles, tensors)?;
    place_spatial(&mut expected, instruction, &roles, tensors)?;
    expect(result.dimensions, expected.iter().copied())
}

/// Checks that every dimension of the three tensors has one role, and that they have as many spatial ones.
fn check_spatial(roles: &[Roles<'_>; 3], tensors: [Array<'_>; 3]) -> Result<(), ModuleFault> {
    for (roles, tensor) in roles.iter().zip(tensors) {
        check_roles(roles, tensor)?;
    }
    let [input, kernel, output] = roles.each_ref().map(|roles| roles.spatial.len());
    expect_count("kernel spatial dimensions", kernel, input)?;
    expect_count("output spatial dimensions", output, input)
}

/// Places the batch and the features of the result.
fn place_others(
    expected: &mut [i64],
    instruction: Instruction<'_>,
    [input_roles, kernel_roles, output_roles]: &[Roles<'_>; 3],
    [input, kernel, _]: [Array<'_>; 3],
) -> Result<(), ModuleFault> {
    let [batch, input_features] = input_roles.others.map(|dimension| size(input, dimension));
    let [kernel_features, output_features] =
        kernel_roles.others.map(|dimension| size(kernel, dimension));
    let groups = groups(instruction, batch, input_features)?;
    check_features(input_features, kernel_features, groups.features)?;
    check_outputs(output_features, groups)?;
    let [batch_dimension, feature_dimension] = output_roles.others;
    // Groups of the batch are convolved with a part of the output features each, and their results
    // are side by side in the features.
    place(expected, batch_dimension, per_group(batch, groups.batch));
    place(expected, feature_dimension, output_features);
    Ok(())
}

/// Places the spatial dimensions of the result: as often as the window, which is as large as the kernel, fits the input.
fn place_spatial(
    expected: &mut [i64],
    instruction: Instruction<'_>,
    [input_roles, kernel_roles, output_roles]: &[Roles<'_>; 3],
    [input, kernel, _]: [Array<'_>; 3],
) -> Result<(), ModuleFault> {
    let window = instruction.proto.window.as_ref();
    let window = window.map_or(&[][..], |window| &window.dimensions);
    let rank = input_roles.spatial.len();
    expect_count("dimensions in its window", window.len(), rank)?;
    for (position, dimension) in window.iter().enumerate() {
        let kernel_size = size(kernel, kernel_roles.spatial[position]);
        let what = || format!("the window and the kernel in spatial dimension {position}");
        expect_size(what, dimension.size, kernel_size)?;
        let base = size(input, input_roles.spatial[position]);
        let size = window_size(base, dimension)?;
        place(expected, output_roles.spatial[position], size);
    }
    Ok(())
}

fn roles(numbers: &ConvolutionDimensionNumbers) -> [Roles<'_>; 3] {
    [
        Roles {
            what: "input dimension",
            spatial: &numbers.input_spatial_dimensions,
            others: [
                numbers.input_batch_dimension,
                numbers.input_feature_dimension,
            ],
        },
        Roles {
            what: "kernel dimension",
            spatial: &numbers.kernel_spatial_dimensions,
            others: [
                numbers.kernel_input_feature_dimension,
                numbers.kernel_output_feature_dimension,
            ],
        },
        Roles {
            what: "output dimension",
            spatial: &numbers.output_spatial_dimensions,
            others: [
                numbers.output_batch_dimension,
                numbers.output_feature_dimension,
            ],
        },
    ]
}

/// Checks that every dimension of a tensor has one role.
fn check_roles(roles: &Roles<'_>, tensor: Array<'_>) -> Result<(), ModuleFault> {
    let mut used = Distinct::default();
    used.add(roles.what, roles.spatial, tensor.rank())?;
    used.add(roles.what, &roles.others, tensor.rank())?;
    expect_count(
        "dimension numbers for a tensor",
        roles.spatial.len() + 2,
        tensor.rank(),
    )
}

/// Returns the numbers of groups of features and of groups of the batch. Old modules write 0 for 1.
fn groups(instruction: Instruction<'_>, batch: i64, features: i64) -> Result<Groups, ModuleFault> {
    let proto = instruction.proto;
    let of_features = proto.feature_group_count;
    let of_batch = proto.batch_group_count;
    expect_divisor("feature_group_count", of_features, features, "features")?;
    expect_divisor("batch_group_count", of_batch, batch, "rows of the batch")?;
    if of_features > 1 && of_batch > 1 {
        return Err(value(
            "batch_group_count",
            of_batch,
            "1 if feature_group_count is more than 1",
        ));
    }
    Ok(Groups {
        features: of_features.max(1),
        batch: of_batch.max(1),
    })
}

fn expect_divisor(what: &str, found: i64, whole: i64, of: &str) -> Result<(), ModuleFault> {
    if found == 0 || whole == UNBOUNDED || (found > 0 && whole % found == 0) {
        return Ok(());
    }
    let expected = format!("a divisor of the {whole} {of} of its input");
    Err(value(what, found, expected))
}

/// Divides a size among groups. An unbounded size stays unbounded.
fn per_group(size: i64, groups: i64) -> i64 {
    if size == UNBOUNDED {
        size
    } else {
        size / groups
    }
}

fn check_features(input: i64, kernel: i64, groups: i64) -> Result<(), ModuleFault> {
    let what = || "the features of its kernel and those of its input per group".to_owned();
    expect_size(what, kernel, per_group(input, groups))
}

fn check_outputs(features: i64, groups: Groups) -> Result<(), ModuleFault> {
    // The larger number counts all groups, because the other one is 1.
    let groups = groups.features.max(groups.batch);
    if features == UNBOUNDED || features % groups == 0 {
        return Ok(());
    }
    Err(value(
        "the number of output features of its kernel",
        features,
        format!("a multiple of its {groups} groups"),
    ))
}

/// Sets a dimension, which exists.
fn place(sizes: &mut [i64], dimension: i64, size: i64) {
    if let Ok(at) = usize::try_from(dimension)
        && let Some(place) = sizes.get_mut(at)
    {
        *place = size;
    }
}

fn size(tensor: Array<'_>, dimension: i64) -> i64 {
    usize::try_from(dimension)
        .ok()
        .and_then(|at| tensor.dimensions.get(at))
        .copied()
        .unwrap_or(UNBOUNDED)
}
