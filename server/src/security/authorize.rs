use std::sync::Arc;

use hlorank_proto::methods::{Method, Scope};
use http::{HeaderMap, header::AUTHORIZATION};

use super::{
    tokens::{TokenFile, Tokens},
    watched::WatchedFiles,
};
use crate::{caller::TokenName, refusal::refusals};

/// Checks whether the token of a call allows it, before its messages are read.
#[derive(Clone)]
pub(crate) struct TokenCheck(pub(super) Option<Arc<WatchedFiles<TokenFile>>>);

/// What a call may do.
pub(crate) struct Permission {
    /// The name of its token, if it needs one.
    pub(crate) token: Option<TokenName>,
    /// Whether it may do what needs the scope `admin`: its token has that, or the server has no tokens.
    pub(crate) is_admin: bool,
    /// The same for the scope `report`.
    pub(crate) may_report: bool,
}

refusals! {
    /// The reason why a token does not allow a call.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    pub enum TokenError {
        #[error("the call has no token; send one in the header authorization, as Bearer TOKEN")]
        Missing => TOKEN_MISSING,
        // The message does not repeat the header, because it may hold a secret.
        #[error("the header authorization is not of the form Bearer TOKEN, or is sent twice")]
        Unreadable => TOKEN_MISSING,
        #[error("the server does not know this token; it may have been replaced")]
        Unknown => TOKEN_UNKNOWN,
        #[error("the token of `{name}` lacks the scope `{scope}`, which this call needs")]
        ScopeMissing { name: String, scope: Scope } => SCOPE_MISSING,
        #[error("the server has no method {path}")]
        UnknownMethod { path: String } => METHOD_UNKNOWN,
    }
}

impl TokenCheck {
    /// Returns what the call of a path with these headers may do. Without a file of tokens, every call may do everything.
    pub(crate) fn check(&self, path: &str, headers: &HeaderMap) -> Result<Permission, TokenError> {
        match &self.0 {
            Some(tokens) => permission(&tokens.current(), path, headers),
            None => Ok(Permission {
                token: None,
                is_admin: true,
                may_report: true,
            }),
        }
    }
}

/// Returns what a call may do, or why it is rejected.
fn permission(tokens: &Tokens, path: &str, headers: &HeaderMap) -> Result<Permission, TokenError> {
    let method = Method::at(path);
    // A method without a scope, such as a health check, must work for a prober that has no token.
    if let Some(Method { scope: None, .. }) = method {
        return Ok(Permission {
            token: None,
            is_admin: false,
            may_report: false,
        });
    }
    let token = bearer(headers)?;
    let holder = tokens.holder(token).ok_or(TokenError::Unknown)?;
    // The token comes first, so that nobody without one learns which methods exist. A method
    // without a description never reaches a service, because nothing says which tokens may call it.
    let unknown = || TokenError::UnknownMethod {
        path: path.to_owned(),
    };
    let required = method.and_then(|method| method.scope).ok_or_else(unknown)?;
    if !holder.allows(required) {
        return Err(TokenError::ScopeMissing {
            name: holder.name.to_string(),
            scope: required,
        });
    }
    Ok(Permission {
        token: Some(TokenName(Arc::clone(&holder.name))),
        is_admin: holder.allows(Scope::Admin),
        may_report: holder.allows(Scope::Report),
    })
}

/// Returns the token of `authorization: Bearer TOKEN`.
fn bearer(headers: &HeaderMap) -> Result<&[u8], TokenError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(TokenError::Missing)?;
    let split = value.as_bytes().split_at_checked(b"Bearer ".len());
    let token = split.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"Bearer "));
    // A proxy may check one of two headers and the server the other, so a call with two has no
    // token.
    let (_, token) = token
        .filter(|_| values.next().is_none())
        .ok_or(TokenError::Unreadable)?;
    Ok(token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use hlorank_graph::Digest;
    use hlorank_proto::methods::METHODS;
    use prost_reflect::DescriptorPool;
    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::security::watched::CredentialFile as _;

    #[test]
    fn a_bearer_token_is_read() {
        let token = |value: &'static str| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
            bearer(&headers).ok().map(<[u8]>::to_vec)
        };
        assert_eq!(token("Bearer abc"), Some(b"abc".to_vec()));
        assert_eq!(token("bearer  abc "), Some(b"abc".to_vec()));
        assert_eq!(token("Basic abc"), None);
        assert_eq!(token("abc"), None);
        assert!(matches!(
            bearer(&HeaderMap::new()),
            Err(TokenError::Missing)
        ));
        let mut twice = HeaderMap::new();
        twice.append(AUTHORIZATION, "Bearer a".parse().unwrap());
        twice.append(AUTHORIZATION, "Bearer b".parse().unwrap());
        assert!(matches!(bearer(&twice), Err(TokenError::Unreadable)));
    }

    /// Tokens of a reader, `reader`, and of an operator, `operator`.
    fn tokens() -> Tokens {
        let line = |name: &str, scopes: &str| {
            let digest = Digest(Sha256::digest(name).into());
            format!("{name} {scopes} sha256:{digest}\n")
        };
        let text = line("reader", "read") + &line("operator", "read,admin");
        let file = TokenFile("tokens".into());
        file.build(&[text.into_bytes()]).unwrap()
    }

    /// Calls a method, and returns whether the call is an operator's, or why it is rejected.
    fn call(path: &str, token: Option<&str>) -> Result<bool, TokenError> {
        let value = token.map(|token| format!("Bearer {token}").parse().unwrap());
        let headers = HeaderMap::from_iter(value.map(|value| (AUTHORIZATION, value)));
        permission(&tokens(), path, &headers).map(|permission| permission.is_admin)
    }

    const REFLECTION: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

    /// The paths of our methods.
    fn paths() -> impl Iterator<Item = String> {
        let methods = METHODS.iter();
        methods.map(|method| format!("/{}/{}", method.service, method.name))
    }

    #[test]
    fn only_health_checks_need_no_token() {
        for path in [
            "/grpc.health.v1.Health/Check",
            "/grpc.health.v1.Health/Watch",
        ] {
            assert_eq!(call(path, None), Ok(false), "{path}");
        }
        let other = [
            "/grpc.health.v1.Health/Nothing",
            REFLECTION,
            "/no.such.Service/Method",
            "/",
            "",
        ];
        for path in other.map(str::to_owned).into_iter().chain(paths()) {
            assert_eq!(call(&path, None), Err(TokenError::Missing), "{path}");
        }
    }

    #[test]
    fn a_reader_calls_what_the_options_open_to_readers() {
        assert_eq!(call(REFLECTION, Some("reader")), Ok(false));
        for (method, path) in METHODS.iter().zip(paths()) {
            assert_eq!(call(&path, Some("operator")), Ok(true), "{path}");
            match (method.scope, call(&path, Some("reader"))) {
                (Some(Scope::Read), Ok(false))
                | (Some(Scope::Report | Scope::Admin), Err(TokenError::ScopeMissing { .. })) => (),
                (_, answer) => panic!("{path}: {answer:?}"),
            }
        }
    }

    #[test]
    fn operators_alone_change_versions_and_delete_and_disclose_what_was_measured() {
        for path in [
            "/hlorank.v1.CostModelService/DeleteMeasurements",
            "/hlorank.v1.CostModelService/GetMeasuredGraph",
            "/hlorank.v1.ModelService/CompareModels",
            "/hlorank.v1.ModelAdminService/Pin",
            "/hlorank.v1.ModelAdminService/Reload",
        ] {
            let refused = call(path, Some("reader"));
            assert!(
                matches!(refused, Err(TokenError::ScopeMissing { .. })),
                "{path}"
            );
        }
    }

    #[test]
    fn a_method_without_a_description_is_closed_to_everybody() {
        for path in [
            "/hlorank.v1.CostModelService/Forgotten",
            "/hlorank.v1.ForgottenService/RankConfigs",
            "/no.such.Service/Method",
            "/",
            "",
        ] {
            let unknown = TokenError::UnknownMethod {
                path: path.to_owned(),
            };
            for token in ["reader", "operator"] {
                assert_eq!(call(path, Some(token)), Err(unknown.clone()));
            }
        }
    }

    #[test]
    fn every_method_of_other_projects_is_described() {
        for set in [
            tonic_health::pb::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
        ] {
            let pool = DescriptorPool::decode(set).unwrap();
            for method in pool
                .services()
                .flat_map(|service| service.methods().collect::<Vec<_>>())
            {
                let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
                let described = Method::at(&path).unwrap_or_else(|| panic!("{path}"));
                assert_eq!(described.is_stream, method.is_client_streaming(), "{path}");
            }
        }
    }
}
