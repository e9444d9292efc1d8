//! How clients see the errors of every module: the reason, the field to blame, the limit that is exceeded, and when to try
//! again.
//!
//! An error is described once, where it is declared: [`refusals!`] takes the words of each variant and, behind an arrow, what
//! clients see of it. The words are the documentation of a variant, too. A variant without a description does not compile. The
//! errors of the crate `graph`, which knows no clients, are described [here](graph). `errors` turns a description into a gRPC
//! status, and nothing else does.

mod graph;
mod reason;

use std::{collections::HashMap, fmt::Display, time::Duration};

pub use reason::REASONS;
pub(crate) use reason::Reason;

/// How clients see an error.
pub(crate) struct Refusal<'a> {
    pub(crate) reason: Reason,
    /// The field or header to blame.
    pub(crate) field: Option<&'a str>,
    /// The exceeded limit as far as it is known, for the `ErrorInfo`: the setting that raises it (`limit`), what the request has
    /// (`found`), and what is allowed.
    pub(crate) metadata: HashMap<String, String>,
    /// Estimated time until the server has room for what it refused; zero if it is not known.
    pub(crate) room_in: Duration,
}

/// An error that can end a call.
pub(crate) trait Refused {
    /// Returns how clients see the error.
    fn refusal(&self) -> Refusal<'_>;
}

impl From<Reason> for Refusal<'_> {
    fn from(reason: Reason) -> Self {
        Self {
            reason,
            field: None,
            metadata: HashMap::new(),
            room_in: Duration::ZERO,
        }
    }
}

impl<'a> Refusal<'a> {
    /// Blames a field.
    pub(crate) fn at(self, field: &'a str) -> Self {
        let field = Some(field);
        Self { field, ..self }
    }

    /// Names the setting of the server that raises the exceeded limit.
    pub(crate) fn limit(self, setting: &str) -> Self {
        self.with("limit", setting)
    }

    /// Says what the request has of what is limited, if that was counted to its end.
    pub(crate) fn found(self, found: impl Display) -> Self {
        self.with("found", found)
    }

    /// Says what is allowed.
    pub(crate) fn allowed(self, allowed: impl Display) -> Self {
        self.with("allowed", allowed)
    }

    /// Says when the server may have room.
    pub(crate) fn room_in(self, room_in: Duration) -> Self {
        Self { room_in, ..self }
    }

    fn with(mut self, key: &str, value: impl Display) -> Self {
        self.metadata.insert(key.to_owned(), value.to_string());
        self
    }

    /// Returns what a message of the crate `graph` leaves out: the setting of the server that raises the exceeded limit.
    pub(crate) fn hint(&self) -> String {
        let setting = self.metadata.get("limit");
        setting.map_or_else(String::new, |setting| {
            format!(", or raise {setting} on the server")
        })
    }
}

impl Reason {
    /// Blames a field.
    pub(crate) fn at(self, field: &str) -> Refusal<'_> {
        Refusal::from(self).at(field)
    }

    /// Names the setting of the server that raises the exceeded limit.
    pub(crate) fn limit(self, setting: &str) -> Refusal<'static> {
        Refusal::from(self).limit(setting)
    }

    /// Says what is allowed.
    pub(crate) fn allowed(self, allowed: impl Display) -> Refusal<'static> {
        Refusal::from(self).allowed(allowed)
    }
}

/// Declares an error that can end a call. After its arrow, a variant has its [`Reason`], and what else clients see of it.
macro_rules! refusals {
    ($(#[$about:meta])* $visibility:vis enum $error:ident { $(
        #[error($($words:tt)+)]
        $variant:ident
        $({ $($field:ident: $type:ty),+ })?
        $(( $(#[$from:meta])? $($held:ident: $held_type:ty),+ ))?
        => $refusal:expr
    ),+ $(,)? }) => {
        $(#[$about])*
        #[allow(missing_docs, reason = "the words of a variant describe it")]
        $visibility enum $error { $(
            #[error($($words)+)]
            $variant
            $({ $($field: $type),+ })?
            $(( $(#[$from])? $($held_type),+ ))?
        ),+ }

        impl $crate::refusal::Refused for $error {
            #[allow(unused_variables, unused_imports, clippy::enum_glob_use, reason = "most variants need only some of this")]
            fn refusal(&self) -> $crate::refusal::Refusal<'_> {
                use $crate::refusal::Reason::*;
                match self { $(
                    Self::$variant $({ $($field),+ })? $(( $($held),+ ))? => $crate::refusal::Refusal::from($refusal),
                )+ }
            }
        }
    };
}

pub(crate) use refusals;
