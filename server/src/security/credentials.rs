use std::{net::SocketAddr, sync::Arc, time::Duration};

use super::{
    AllowedHosts, ConnectionGate, SecuritySettings, TokenCheck, TrustedProxies,
    certificates::TlsFiles,
    tokens::TokenFile,
    watched::{CredentialError, CredentialFile, WatchedFiles},
};
use crate::metrics::{ConnectionSeries, Metrics, ReloadSeries};

/// The certificate and the tokens in use.
pub(crate) struct Credentials {
    tls: Option<Arc<WatchedFiles<TlsFiles>>>,
    tokens: Option<Arc<WatchedFiles<TokenFile>>>,
    mutual: bool,
    max_connections: usize,
    proxies: Arc<TrustedProxies>,
    hosts: AllowedHosts,
    metrics: Arc<Metrics>,
}

impl Credentials {
    /// Reads the files that settings name.
    pub(crate) fn open(
        settings: &SecuritySettings,
        metrics: &Arc<Metrics>,
    ) -> Result<Self, CredentialError> {
        let files = TlsFiles::from_settings(settings)?;
        let tokens = settings.tokens.0.clone().map(TokenFile);
        let credentials = Self {
            mutual: files.as_ref().is_some_and(TlsFiles::is_mutual),
            tls: files.map(WatchedFiles::open).transpose()?.map(Arc::new),
            tokens: tokens.map(WatchedFiles::open).transpose()?.map(Arc::new),
            max_connections: settings.max_connections as usize,
            proxies: Arc::new(settings.trusted_proxies.clone()),
            hosts: settings.allowed_hosts.clone(),
            metrics: Arc::clone(metrics),
        };
        credentials.show_expiry();
        Ok(credentials)
    }

    /// Returns the gate that connections to a listener pass.
    pub(crate) fn gate(&self, series: &Arc<ConnectionSeries>) -> ConnectionGate {
        ConnectionGate::with_tls(self.max_connections, self.tls.clone(), series)
    }

    /// Returns the check of the tokens of calls.
    pub(crate) fn token_check(&self) -> TokenCheck {
        TokenCheck(self.tokens.clone())
    }

    /// Returns the hosts that calls may name. A web page has no credentials, so calls with them may name any.
    pub(crate) fn allowed_hosts(&self) -> AllowedHosts {
        let has_credentials = self.tokens.is_some() || self.mutual;
        if has_credentials {
            AllowedHosts::all()
        } else {
            self.hosts.clone()
        }
    }

    /// Returns the hosts that the settings allow, whether calls have credentials or not.
    pub(crate) fn listed_hosts(&self) -> AllowedHosts {
        self.hosts.clone()
    }

    /// Returns the proxies whose header names the client.
    pub(crate) fn trusted_proxies(&self) -> Arc<TrustedProxies> {
        Arc::clone(&self.proxies)
    }

    /// Logs a warning for each of these addresses that exposes tokens or admin calls to the network.
    pub(crate) fn warn(&self, calls: SocketAddr, admin: Option<SocketAddr>) {
        let exposed = |address: &SocketAddr| !address.ip().is_loopback();
        // One warning is enough, because one certificate is for both listeners.
        if self.tokens.is_some()
            && self.tls.is_none()
            && let Some(address) = [Some(calls), admin].into_iter().flatten().find(exposed)
        {
            tracing::warn!(%address, "tokens are sent over the network unencrypted; set --tls-certificate");
        }
        if self.tokens.is_none()
            && !self.mutual
            && let Some(address) = admin.filter(exposed)
        {
            tracing::warn!(%address, "every client that reaches the admin listener can change which versions serve; set --tokens");
        }
    }

    /// Polls the files until the credentials are dropped.
    pub(crate) async fn poll(self: Arc<Self>, interval: Duration) {
        // The task must not keep the credentials of a server that has ended.
        let credentials = Arc::downgrade(&self);
        drop(self);
        loop {
            tokio::time::sleep(interval).await;
            let Some(credentials) = credentials.upgrade() else {
                return;
            };
            credentials.reload().await;
        }
    }

    /// Reads the files again if they have changed.
    pub(crate) async fn reload(self: Arc<Self>) {
        // A network file system may take long to read a file.
        let reloaded = tokio::task::spawn_blocking(move || {
            let security = &self.metrics.security;
            reload(self.tls.as_deref(), "certificate", &security.certificate);
            reload(self.tokens.as_deref(), "tokens", &security.tokens);
            self.show_expiry();
        });
        if let Err(error) = reloaded.await {
            tracing::error!(%error, "certificates and tokens were not checked for changes");
        }
    }

    fn show_expiry(&self) {
        if let Some(tls) = &self.tls {
            self.metrics
                .security
                .certificate_expiry
                .set(tls.current().expiry.as_secs_f64());
        }
    }
}

fn reload<S: CredentialFile>(
    watched: Option<&WatchedFiles<S>>,
    what: &'static str,
    series: &ReloadSeries,
) {
    match watched.and_then(WatchedFiles::reload) {
        None => {}
        Some(Ok(())) => {
            series.loaded.increment(1);
            tracing::info!(what, "changed files were loaded");
        }
        Some(Err(error)) => {
            series.refused.increment(1);
            tracing::warn!(what, %error, "changed files were rejected; the previous ones stay in use");
        }
    }
}
