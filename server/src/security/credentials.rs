use std::{net::SocketAddr, sync::Arc, time::Duration};

use tokio::sync::Semaphore;

use super::{
    AuthorizeLayer, CredentialError, Door, SecuritySettings,
    certificates::TlsFiles,
    tokens::TokenFile,
    watched::{Source, Watched},
};
use crate::metrics::{ConnectionSeries, Metrics, ReloadSeries};

/// The certificate and the tokens in use.
pub(crate) struct Credentials {
    tls: Option<Arc<Watched<TlsFiles>>>,
    tokens: Option<Arc<Watched<TokenFile>>>,
    mutual: bool,
    max_connections: u32,
    metrics: Arc<Metrics>,
}

impl Credentials {
    /// Reads the files that settings name.
    pub(crate) fn open(settings: &SecuritySettings, metrics: &Arc<Metrics>) -> Result<Self, CredentialError> {
        let files = TlsFiles::of(settings)?;
        let tokens = settings.tokens.0.clone().map(TokenFile);
        let credentials = Self {
            mutual: files.as_ref().is_some_and(TlsFiles::is_mutual),
            tls: files.map(Watched::open).transpose()?.map(Arc::new),
            tokens: tokens.map(Watched::open).transpose()?.map(Arc::new),
            max_connections: settings.max_connections,
            metrics: Arc::clone(metrics),
        };
        credentials.show_expiry();
        Ok(credentials)
    }

    /// What connections to a listener come in through.
    pub(crate) fn door(&self, series: &Arc<ConnectionSeries>) -> Door {
        Door {
            places: Arc::new(Semaphore::new(self.max_connections as usize)),
            tls: self.tls.clone(),
            series: Arc::clone(series),
        }
    }

    /// What calls must pass.
    pub(crate) fn authorize(&self) -> AuthorizeLayer {
        AuthorizeLayer(self.tokens.clone())
    }

    /// Tells what others on the way could read or change, given the addresses that are listened on.
    pub(crate) fn warn(&self, calls: SocketAddr, admin: Option<SocketAddr>) {
        let exposed = |address: &SocketAddr| !address.ip().is_loopback();
        if self.tokens.is_some()
            && self.tls.is_none()
            && let Some(address) = [Some(calls), admin].into_iter().flatten().find(exposed)
        {
            tracing::warn!(%address, "tokens go over the network unencrypted; give --tls-certificate");
        }
        if self.tokens.is_none()
            && !self.mutual
            && let Some(address) = admin.filter(exposed)
        {
            tracing::warn!(%address, "whoever reaches the admin listener may choose versions; give --tokens");
        }
    }

    /// Looks at the files every so often until it is dropped.
    pub(crate) async fn keep_watch(self: Arc<Self>, every: Duration) {
        let credentials = Arc::downgrade(&self);
        drop(self);
        loop {
            tokio::time::sleep(every).await;
            let Some(credentials) = credentials.upgrade() else { return };
            credentials.look().await;
        }
    }

    /// Looks whether files have changed.
    pub(crate) async fn look(self: Arc<Self>) {
        let looked = tokio::task::spawn_blocking(move || {
            let security = &self.metrics.security;
            look(self.tls.as_deref(), "certificate", &security.certificate);
            look(self.tokens.as_deref(), "tokens", &security.tokens);
            self.show_expiry();
        });
        if let Err(error) = looked.await {
            tracing::error!(%error, "certificates and tokens were not looked at");
        }
    }

    fn show_expiry(&self) {
        if let Some(tls) = &self.tls {
            self.metrics.security.certificate_expiry.set(tls.current().expiry.as_secs_f64());
        }
    }
}

fn look<S: Source>(watched: Option<&Watched<S>>, what: &'static str, series: &ReloadSeries) {
    match watched.and_then(Watched::look) {
        None => {}
        Some(Ok(())) => {
            series.loaded.increment(1);
            tracing::info!(what, "changed files were read");
        }
        Some(Err(error)) => {
            series.refused.increment(1);
            tracing::warn!(what, %error, "changed files were refused; what was before stays");
        }
    }
}
