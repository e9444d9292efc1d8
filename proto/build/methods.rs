//! Reads the options of `hlorank/v1/method.proto`.

use std::{collections::HashSet, error::Error, fmt};

use protox::prost_reflect::{
    DescriptorPool, DynamicMessage, MethodDescriptor, ReflectMessage as _,
};

/// The file that declares the options. Only the build needs it.
pub(crate) const FILE: &str = "hlorank/v1/method.proto";

/// The package of the services that the server implements.
pub(crate) const PACKAGE: &str = "hlorank.v1";

/// A method whose options say too little.
#[derive(Debug)]
pub(crate) struct IncompleteMethod {
    /// The full name of the method.
    method: String,
    /// The option that it lacks.
    option: &'static str,
}

impl fmt::Display for IncompleteMethod {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { method, option } = self;
        write!(
            formatter,
            "the method {method} lacks the option `{option}`; {FILE} says which options a method needs"
        )
    }
}

impl Error for IncompleteMethod {}

/// Returns the methods of our services as a Rust expression, an array of `Method`.
///
/// # Errors
///
/// A method lacks a required option. It must not build, because a forgotten scope would open it to somebody.
pub(crate) fn table(pool: &DescriptorPool) -> Result<String, IncompleteMethod> {
    let services = pool
        .services()
        .filter(|service| service.parent_file().package_name() == PACKAGE);
    let rows: Vec<String> = services
        .flat_map(|service| service.methods().collect::<Vec<_>>())
        .map(|method| row(pool, &method))
        .collect::<Result<_, _>>()?;
    Ok(format!("[{}]", rows.join(",\n")))
}

/// Returns the message and the name of each field that the server receives encoded.
pub(crate) fn encoded_fields(pool: &DescriptorPool) -> HashSet<(String, String)> {
    let Some(encoded) = pool.get_extension_by_name("hlorank.v1.encoded") else {
        return HashSet::new();
    };
    let fields = pool
        .all_messages()
        .flat_map(|message| message.fields().collect::<Vec<_>>());
    fields
        .filter(|field| field.options().get_extension(&encoded).as_bool() == Some(true))
        .map(|field| {
            let message = field.parent_message().name().to_owned();
            (message, field.name().to_owned())
        })
        .collect()
}

fn row(pool: &DescriptorPool, method: &MethodDescriptor) -> Result<String, IncompleteMethod> {
    let lacks = |option| IncompleteMethod {
        method: method.full_name().to_owned(),
        option,
    };
    let rules = rules(pool, method).ok_or_else(|| lacks("method"))?;
    let scope = variant(&rules, "scope").ok_or_else(|| lacks("scope"))?;
    let class = variant(&rules, "class").ok_or_else(|| lacks("class"))?;
    let is_set = |option| {
        let value = rules.get_field_by_name(option);
        value.and_then(|value| value.as_bool()).unwrap_or_default()
    };
    Ok(format!(
        "Method {{ service: {service:?}, name: {name:?}, scope: Some(Scope::{scope}), class: CallClass::{class}, \
         selects_model: {selects_model}, changes: {changes}, is_stream: {is_stream} }}",
        service = method.parent_service().full_name(),
        name = method.name(),
        selects_model = is_set("selects_model"),
        changes = is_set("changes"),
        is_stream = method.is_client_streaming(),
    ))
}

/// Returns the option `method` of a method, if it is set.
fn rules(pool: &DescriptorPool, method: &MethodDescriptor) -> Option<DynamicMessage> {
    let option = pool.get_extension_by_name("hlorank.v1.method")?;
    let options = method.options();
    options
        .has_extension(&option)
        .then(|| options.get_extension(&option).as_message().cloned())?
}

/// Returns the name of an enum's variant in Rust: `Scoring` for `CALL_CLASS_SCORING` of `CallClass`. Returns `None` if the
/// field is not set.
fn variant(rules: &DynamicMessage, field: &str) -> Option<String> {
    let field = rules.descriptor().get_field_by_name(field)?;
    let number = rules.get_field(&field).as_enum_number()?;
    // 0 is the unspecified variant, which a method without the option has, too.
    if number == 0 {
        return None;
    }
    let kind = field.kind();
    let value = kind.as_enum()?.get_value(number)?;
    // Every variant has the name of its enum in front, which the unspecified one shows.
    let unspecified = kind.as_enum()?.get_value(0)?;
    let prefix = unspecified.name().strip_suffix("UNSPECIFIED")?;
    let name = value.name().strip_prefix(prefix)?;
    let (first, rest) = name.split_at_checked(1)?;
    Some(format!("{first}{}", rest.to_lowercase()))
}
