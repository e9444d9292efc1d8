use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use hlorank_graph::Digest;
use hlorank_proto::methods::Scope;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::watched::{CredentialError, CredentialFile};

/// A file with the name, scopes and digest of one token per line.
pub(super) struct TokenFile(pub(super) PathBuf);

/// The valid tokens.
pub(super) struct Tokens(Vec<Token>);

/// One token. The server knows only its digest.
pub(super) struct Token {
    pub(super) name: Arc<str>,
    scopes: Vec<Scope>,
    digest: [u8; 32],
}

/// Tokens are stored as SHA-256. A slow hash would not help: a token has 256 random bits, so it cannot be guessed, and
/// every call pays for the hash.
const ALGORITHM: &str = "sha256:";

impl Tokens {
    /// Returns the known token that equals `token`. Takes the same time for every token, known or not.
    pub(super) fn holder(&self, token: &[u8]) -> Option<&Token> {
        // A digest of one length makes the comparison independent of the length of the token, too.
        let digest = Sha256::digest(token);
        // `find` would stop at the token, and its time would tell how many of the file stand before
        // it.
        self.0.iter().fold(None, |found, known| {
            let is_known: bool = known.digest.ct_eq(digest.as_slice()).into();
            if is_known { Some(known) } else { found }
        })
    }
}

impl Token {
    pub(super) fn allows(&self, scope: Scope) -> bool {
        // Who may delete what others reported, and report in their names, may report.
        let includes = scope == Scope::Report && self.scopes.contains(&Scope::Admin);
        includes || self.scopes.contains(&scope)
    }
}

impl CredentialFile for TokenFile {
    type Value = Tokens;

    fn files(&self) -> Vec<&Path> {
        vec![&self.0]
    }

    fn build(&self, contents: &[Vec<u8>]) -> Result<Tokens, CredentialError> {
        let path = self.0.display();
        let wrong = |line, detail| {
            CredentialError(format!(
                "line {line} of `{path}`: {detail}; a line is NAME SCOPES sha256:HEX"
            ))
        };
        let text = String::from_utf8_lossy(&contents[0]);
        // Comments are no tokens.
        let tokens = (1..)
            .zip(text.lines().map(str::trim))
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
            .map(|(number, line)| token(line).map_err(|detail| wrong(number, detail)));
        let tokens = tokens.collect::<Result<Vec<_>, _>>()?;
        if tokens.is_empty() {
            // An empty file is more likely half written than intended.
            return Err(CredentialError(format!(
                "`{path}` has no token; leave out --tokens to require none"
            )));
        }
        Ok(Tokens(tokens))
    }
}

/// Parses a line, or returns what is wrong with it.
fn token(line: &str) -> Result<Token, &'static str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, scopes, digest] = words[..] else {
        return Err("expected three words");
    };
    let digest = digest
        .strip_prefix(ALGORITHM)
        .ok_or("expected a digest that begins with sha256:")?;
    Ok(Token {
        name: name.into(),
        scopes: scopes.split(',').map(scope).collect::<Result<_, _>>()?,
        digest: Digest::from_hex(digest)
            .ok_or("expected a digest of 64 hexadecimal digits")?
            .0,
    })
}

fn scope(text: &str) -> Result<Scope, &'static str> {
    match text {
        "read" => Ok(Scope::Read),
        "report" => Ok(Scope::Report),
        "admin" => Ok(Scope::Admin),
        _ => Err("expected the scopes read, report or admin"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf %s secret | sha256sum`
    const DIGEST_OF_SECRET: &str =
        "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

    fn tokens(text: &str) -> Result<Tokens, String> {
        let file = TokenFile(PathBuf::from("tokens"));
        file.build(&[text.as_bytes().to_vec()])
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_token_is_known_by_its_digest() {
        let text = format!("# who\n\n ci  read,admin\tsha256:{DIGEST_OF_SECRET}\r\n");
        let tokens = tokens(&text).unwrap();
        let holder = tokens.holder(b"secret").unwrap();
        assert_eq!(&*holder.name, "ci");
        assert!(holder.allows(Scope::Read) && holder.allows(Scope::Admin));
        for other in [
            b"".as_slice(),
            b"Secret",
            b"secret ",
            DIGEST_OF_SECRET.as_bytes(),
        ] {
            assert!(tokens.holder(other).is_none());
        }
    }

    #[test]
    fn a_token_allows_only_its_scopes() {
        let allowed = |scopes: &str| {
            let tokens = tokens(&format!("ci {scopes} sha256:{DIGEST_OF_SECRET}")).unwrap();
            let holder = tokens.holder(b"secret").unwrap();
            [Scope::Read, Scope::Report, Scope::Admin].map(|scope| holder.allows(scope))
        };
        assert_eq!(allowed("read"), [true, false, false]);
        assert_eq!(allowed("report"), [false, true, false]);
        assert_eq!(allowed("read,report"), [true, true, false]);
        assert_eq!(
            allowed("admin"),
            [false, true, true],
            "admin includes report"
        );
    }

    #[test]
    fn the_error_of_a_malformed_line_does_not_quote_it() {
        let wrong = [
            ("ci read", "expected three words"),
            (
                "ci read secret",
                "expected a digest that begins with sha256:",
            ),
            (
                "ci read sha256:2bb8",
                "expected a digest of 64 hexadecimal digits",
            ),
            (
                "ci write sha256:2bb8",
                "expected the scopes read, report or admin",
            ),
            (
                &format!("ci read sha256:{DIGEST_OF_SECRET}00"),
                "expected a digest of 64 hexadecimal digits",
            ),
        ];
        for (line, detail) in wrong {
            let error = tokens(&format!("# who\n{line}\n")).err().unwrap();
            assert!(
                error.starts_with(&format!("line 2 of `tokens`: {detail}")),
                "{error}"
            );
            assert!(
                !error.contains("2bb8") && !error.contains("secret"),
                "{error}"
            );
        }
    }
}
