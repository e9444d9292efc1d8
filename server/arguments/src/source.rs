//! Reads the arguments of this process. An error about a value says what is expected, and where the value came from.

use std::{
    env,
    error::Error as _,
    ffi::{OsStr, OsString},
    num::{IntErrorKind, ParseFloatError, ParseIntError},
};

use clap::{
    Arg, ArgMatches, Command, Error,
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// Reads the arguments and variables of this process. Ends it if one of them is wrong, or if they ask for help.
#[must_use]
pub fn matches_of_process(command: Command) -> ArgMatches {
    let arguments: Vec<OsString> = env::args_os().collect();
    let mut command = without_empty_variables(command, &|name| env::var_os(name));
    let result = command.try_get_matches_from_mut(&arguments);
    let result = result.and_then(|matches| match empty_value(&command, &matches) {
        Some(error) => Err(error),
        None => Ok(matches),
    });
    result.unwrap_or_else(|error| {
        // Until now, clap has built the command of the arguments only, and an argument that is not built has no text.
        command.build();
        explained(error, &command, &arguments, &|name| env::var_os(name)).exit()
    })
}

/// Makes empty variables of arguments without a default as good as unset.
fn without_empty_variables(
    command: Command,
    variable: &dyn Fn(&OsStr) -> Option<OsString>,
) -> Command {
    let is_empty = |name: &OsStr| variable(name).is_some_and(|value| value.is_empty());
    command
        .mut_args(|argument| {
            let is_optional = argument.get_default_values().is_empty();
            if is_optional && argument.get_env().is_some_and(is_empty) {
                argument.env(None::<&'static str>)
            } else {
                argument
            }
        })
        .mut_subcommands(|command| without_empty_variables(command, variable))
}

/// Returns the error that the value of a setting is empty, if one is.
fn empty_value(command: &Command, matches: &ArgMatches) -> Option<Error> {
    let is_empty = |argument: &&Arg| {
        let mut values = matches
            .get_raw(argument.get_id().as_str())
            .into_iter()
            .flatten();
        argument.get_env().is_some() && values.any(OsStr::is_empty)
    };
    if let Some(argument) = command.get_arguments().find(is_empty) {
        let mut error = Error::new(ErrorKind::InvalidValue).with_cmd(command);
        let shown = argument.to_string();
        error.insert(ContextKind::InvalidArg, ContextValue::String(shown));
        error.insert(
            ContextKind::InvalidValue,
            ContextValue::String(String::new()),
        );
        return Some(error);
    }
    let (name, matches) = matches.subcommand()?;
    empty_value(command.find_subcommand(name)?, matches)
}

/// Returns an error with what is expected in place of the standard library's words, and with where the value came from.
fn explained(
    error: Error,
    command: &Command,
    arguments: &[OsString],
    variable: &dyn Fn(&OsStr) -> Option<OsString>,
) -> Error {
    let expected = expected_number(&error);
    let source = source_of_value(&error, command, arguments, variable);
    let mut error = if expected.is_some() {
        without_cause(&error, command)
    } else {
        error
    };
    let tips: Vec<StyledStr> = expected
        .into_iter()
        .chain(source)
        .map(StyledStr::from)
        .collect();
    if !tips.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// Returns what is expected in place of a value that is no number.
fn expected_number(error: &Error) -> Option<String> {
    let cause = error.source()?;
    if cause.is::<ParseFloatError>() {
        return Some("expected a number, such as 0.5".to_owned());
    }
    let expected = match cause.downcast_ref::<ParseIntError>()?.kind() {
        IntErrorKind::Zero => "expected a whole number above 0",
        IntErrorKind::PosOverflow => "expected a smaller number",
        _ => "expected a whole number, such as 8",
    };
    Some(expected.to_owned())
}

/// Returns the same error about the same value, without the error of the standard library that caused it.
fn without_cause(error: &Error, command: &Command) -> Error {
    let mut bare = Error::new(error.kind()).with_cmd(command);
    for kind in [ContextKind::InvalidArg, ContextKind::InvalidValue] {
        if let Some(value) = error.get(kind) {
            bare.insert(kind, value.clone());
        }
    }
    bare
}

/// Returns where the value that an error is about came from, unless it is an argument, which the error shows itself.
fn source_of_value(
    error: &Error,
    command: &Command,
    arguments: &[OsString],
    variable: &dyn Fn(&OsStr) -> Option<OsString>,
) -> Option<String> {
    if error.kind() == ErrorKind::InvalidUtf8 {
        return variable_without_utf8(command, variable);
    }
    let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let argument = find(command, &|argument| argument.to_string() == *shown)?;
    let flag = format!("--{}", argument.get_long()?);
    let is_given = arguments
        .iter()
        .filter_map(|text| text.to_str())
        .any(|text| {
            let name = text.split_once('=').map_or(text, |(name, _)| name);
            name == flag
        });
    if is_given {
        return None;
    }
    let name = argument.get_env()?;
    let source = match variable(name) {
        Some(_) => format!(
            "the value is that of the environment variable {}",
            name.display()
        ),
        None => format!("the value is the default of {flag}"),
    };
    Some(source)
}

/// Returns which variable cannot be read as text, of which clap's error names none.
fn variable_without_utf8(
    command: &Command,
    variable: &dyn Fn(&OsStr) -> Option<OsString>,
) -> Option<String> {
    let is_broken = |argument: &Arg| {
        argument
            .get_env()
            .and_then(variable)
            .is_some_and(|value| value.to_str().is_none())
    };
    let name = find(command, &is_broken)?.get_env()?;
    Some(format!(
        "the environment variable {} is not UTF-8",
        name.display()
    ))
}

/// Finds an argument of a command or of one of its subcommands.
fn find<'a>(command: &'a Command, is_wanted: &dyn Fn(&Arg) -> bool) -> Option<&'a Arg> {
    command
        .get_arguments()
        .find(|argument| is_wanted(argument))
        .or_else(|| {
            command
                .get_subcommands()
                .find_map(|subcommand| find(subcommand, is_wanted))
        })
}

#[cfg(test)]
mod tests {
    use clap::{Arg, value_parser};

    use super::*;

    fn command() -> Command {
        let port = Arg::new("port")
            .long("port")
            .env("HLORANK_NO_SUCH_VARIABLE")
            .default_value("many");
        Command::new("program")
            .subcommand(Command::new("call").arg(port.value_parser(value_parser!(u16))))
    }

    fn error_of(arguments: &[&str], value: Option<&str>) -> String {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let mut command = command();
        let error = command.try_get_matches_from_mut(&arguments).unwrap_err();
        command.build();
        explained(error, &command, &arguments, &|_| value.map(OsString::from)).to_string()
    }

    #[test]
    fn an_error_about_an_argument_says_what_is_expected_and_names_no_variable() {
        for arguments in [
            &["program", "call", "--port", "few"][..],
            &["program", "call", "--port=few"],
        ] {
            let error = error_of(arguments, Some("80"));
            assert!(error.contains("invalid value 'few' for '--port"), "{error}");
            assert!(
                error.contains("expected a whole number, such as 8"),
                "{error}"
            );
            assert!(!error.contains("invalid digit"), "{error}");
            assert!(!error.contains("HLORANK_NO_SUCH_VARIABLE"), "{error}");
        }
    }

    #[test]
    fn an_error_about_a_default_says_that_it_is_one() {
        let error = error_of(&["program", "call"], None);
        assert!(
            error.contains("the value is the default of --port"),
            "{error}"
        );
    }
}
