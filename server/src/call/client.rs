use crate::store::Reporter;

/// Who makes a call, as far as it concerns measurements.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// What its measurements are kept under.
    pub(crate) reporter: Reporter,
    /// Whether it may do what needs the scope `admin`: its token has that, or the server has no tokens.
    pub(crate) is_admin: bool,
}

impl Client {
    /// The name of a reporter, if the client may know it; otherwise nothing.
    pub(crate) fn shown<'a>(&self, reporter: &'a Reporter) -> &'a str {
        // A reporter is a token's name or an address, which other clients must not learn.
        if self.is_admin || *reporter == self.reporter {
            reporter.name()
        } else {
            ""
        }
    }
}
