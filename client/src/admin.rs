use hlorank_proto::v1::{
    Model, PinRequest, ReloadRequest, RollbackRequest, SetCanaryRequest, UnpinRequest,
    model_admin_service_client::ModelAdminServiceClient,
};
use tonic::{Request, Status, transport::Channel};

use crate::{ClientError, Connection, Token, credentials::request};

/// A connection to a server's admin listener, which changes which versions of a model serve. Clones share it.
///
/// Each call returns once the change is in effect, with every version of the model as it is then. None is tried again,
/// for one that is made twice may change more, and none has a deadline: to load a model takes as long as it takes.
#[derive(Clone, Debug)]
pub struct AdminClient {
    models: ModelAdminServiceClient<Channel>,
    endpoint: String,
    token: Option<Token>,
}

impl AdminClient {
    /// Connects to the admin listener of a server, such as `http://127.0.0.1:7072`.
    pub async fn connect(endpoint: &str, connection: Connection) -> Result<Self, ClientError> {
        let channel = connection.endpoint(endpoint)?.connect().await;
        let channel = channel.map_err(|source| ClientError::no_connection(endpoint, source))?;
        let (models, endpoint) = (ModelAdminServiceClient::new(channel), endpoint.to_owned());
        Ok(Self { models, endpoint, token: connection.token })
    }

    /// Looks for new versions at once, and tries rejected ones again. Tells of every model.
    pub async fn reload(&self) -> Result<Vec<Model>, ClientError> {
        let answer = self.models.clone().reload(self.request(ReloadRequest {})).await;
        Ok(answer.map_err(|status| self.error(status))?.into_inner().models)
    }

    /// Has a version serve whatever newer ones there are, now and after a restart.
    pub async fn pin(&self, name: &str, version: u64) -> Result<Vec<Model>, ClientError> {
        let request = PinRequest { name: name.to_owned(), version };
        let answer = self.models.clone().pin(self.request(request)).await;
        Ok(answer.map_err(|status| self.error(status))?.into_inner().models)
    }

    /// Has the newest valid version serve again, for every graph.
    pub async fn unpin(&self, name: &str) -> Result<Vec<Model>, ClientError> {
        let request = UnpinRequest { name: name.to_owned() };
        let answer = self.models.clone().unpin(self.request(request)).await;
        Ok(answer.map_err(|status| self.error(status))?.into_inner().models)
    }

    /// Pins the version that served before, or the next older one, and ends a canary.
    pub async fn rollback(&self, name: &str) -> Result<Vec<Model>, ClientError> {
        let request = RollbackRequest { name: name.to_owned() };
        let answer = self.models.clone().rollback(self.request(request)).await;
        Ok(answer.map_err(|status| self.error(status))?.into_inner().models)
    }

    /// Has a second version serve `percent` of the graphs, 1 to 100; 0 ends the canary.
    pub async fn set_canary(
        &self,
        name: &str,
        version: u64,
        percent: u32,
    ) -> Result<Vec<Model>, ClientError> {
        let request = SetCanaryRequest { name: name.to_owned(), version, percent };
        let answer = self.models.clone().set_canary(self.request(request)).await;
        Ok(answer.map_err(|status| self.error(status))?.into_inner().models)
    }

    fn error(&self, status: Status) -> ClientError {
        ClientError::of_call(&self.endpoint, status)
    }

    /// A request that tells the server who calls.
    fn request<T>(&self, message: T) -> Request<T> {
        request(message, self.token.as_ref())
    }
}
