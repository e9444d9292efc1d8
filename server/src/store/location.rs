use std::{
    convert::Infallible,
    fmt::{self, Debug, Formatter},
    path::PathBuf,
    str::FromStr,
};

/// Where measurements are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreLocation {
    /// Nowhere.
    Off,
    /// In a file of this server.
    File(PathBuf),
    /// In a database that servers share.
    Database(DatabaseUrl),
}

/// Address of a PostgreSQL database. It may contain a password, so it is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(pub(super) String);

impl Debug for DatabaseUrl {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("a PostgreSQL database")
    }
}

impl FromStr for StoreLocation {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let is_database = ["postgres://", "postgresql://"]
            .iter()
            .any(|scheme| text.starts_with(scheme));
        Ok(match text {
            "off" => Self::Off,
            _ if is_database => Self::Database(DatabaseUrl(text.to_owned())),
            _ => Self::File(text.into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_database_is_no_path_and_shows_no_password() {
        let location = |text: &str| text.parse::<StoreLocation>().unwrap();
        assert_eq!(location("off"), StoreLocation::Off);
        assert_eq!(
            location("./measurements"),
            StoreLocation::File("./measurements".into())
        );
        for text in [
            "postgres://hlorank:secret@db/measurements",
            "postgresql://db",
        ] {
            let location = location(text);
            assert!(matches!(location, StoreLocation::Database(_)));
            assert_eq!(format!("{location:?}"), "Database(a PostgreSQL database)");
        }
    }
}
