use http::Method;

/// What the path of a call in the REST form says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::service::json) struct RestPath {
    /// Name of the method of gRPC.
    pub(super) method: &'static str,
    /// The model; empty if the path has none, or for the default model.
    pub(super) model: String,
    /// Its version; empty for the one that serves.
    pub(super) version: String,
}

/// The method that ranks, the only one whose request has a body.
pub(super) const INFER: &str = "ModelInfer";

impl RestPath {
    /// Reads a path such as `/v2/models/layout-xla-cpu/ready`; `None` if the protocol does not have it.
    pub(super) fn of(verb: &Method, path: &str) -> Option<Self> {
        let segments: Vec<&str> = path.strip_prefix("/v2")?.split('/').collect();
        match (verb, &segments[..]) {
            // With and without a slash at the end.
            (&Method::GET, [""] | ["", ""]) => Some(Self::of_server("ServerMetadata")),
            (&Method::GET, ["", "health", "live"]) => Some(Self::of_server("ServerLive")),
            (&Method::GET, ["", "health", "ready"]) => Some(Self::of_server("ServerReady")),
            // Before the path without a version, which would take `versions` for a method.
            (_, ["", "models", model, "versions", version, rest @ ..]) => {
                Some(Self::of_model(of_model(verb, rest)?, model, version))
            }
            (_, ["", "models", model, rest @ ..]) => {
                Some(Self::of_model(of_model(verb, rest)?, model, ""))
            }
            _ => None,
        }
    }

    fn of_server(method: &'static str) -> Self {
        Self::of_model(method, "", "")
    }

    fn of_model(method: &'static str, model: &str, version: &str) -> Self {
        Self {
            method,
            model: model.to_owned(),
            version: version.to_owned(),
        }
    }
}

/// Returns the method of what follows a model in a path.
fn of_model(verb: &Method, rest: &[&str]) -> Option<&'static str> {
    match (verb, rest) {
        (&Method::GET, []) => Some("ModelMetadata"),
        (&Method::GET, ["ready"]) => Some("ModelReady"),
        (&Method::POST, ["infer"]) => Some(INFER),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_method_model_and_version() {
        let read = |verb, path| {
            RestPath::of(&verb, path).map(|found| {
                let RestPath {
                    method,
                    model,
                    version,
                } = found;
                format!("{method} {model} {version}")
            })
        };
        for (verb, path, expected) in [
            (Method::GET, "/v2/", Some("ServerMetadata  ")),
            (
                Method::GET,
                "/v2/models/a/versions/3",
                Some("ModelMetadata a 3"),
            ),
            (Method::POST, "/v2/models//infer", Some("ModelInfer  ")),
            (Method::GET, "/v2/models/a/infer", None),
            (Method::POST, "/v2/models/a/ready", None),
            (Method::GET, "/v2/models", None),
            (Method::GET, "/v2x/health/live", None),
        ] {
            assert_eq!(read(verb, path).as_deref(), expected, "{path}");
        }
    }
}
