use hlorank_proto::v1::{
    Model, PinRequest, ReloadRequest, RollbackRequest, SetCanaryRequest, UnpinRequest,
    model_admin_service_client::ModelAdminServiceClient,
};
use tonic::transport::Channel;

use crate::{ClientError, Connection};

/// A connection to a server's admin listener, which changes which versions of a model serve. Clones share it.
///
/// Each call returns once the change is in effect, with every version of the model as it is then. None is tried again,
/// for one that is made twice may change more, and none has a deadline: to load a model takes as long as it takes.
#[derive(Clone, Debug)]
pub struct AdminClient {
    models: ModelAdminServiceClient<Channel>,
}

impl AdminClient {
    /// Connects to the admin listener of a server, such as `http://127.0.0.1:7072`.
    pub async fn connect(endpoint: &str, connection: Connection) -> Result<Self, ClientError> {
        let channel = connection.endpoint(endpoint)?.connect().await;
        let channel = channel.map_err(|source| ClientError::no_connection(endpoint, source))?;
        Ok(Self { models: ModelAdminServiceClient::new(channel) })
    }

    /// Looks for new versions at once, and tries rejected ones again. Tells of every model.
    pub async fn reload(&self) -> Result<Vec<Model>, ClientError> {
        Ok(self.models.clone().reload(ReloadRequest {}).await?.into_inner().models)
    }

    /// Has a version serve whatever newer ones there are, now and after a restart.
    pub async fn pin(&self, name: &str, version: u64) -> Result<Vec<Model>, ClientError> {
        let request = PinRequest { name: name.to_owned(), version };
        Ok(self.models.clone().pin(request).await?.into_inner().models)
    }

    /// Has the newest valid version serve again, for every graph.
    pub async fn unpin(&self, name: &str) -> Result<Vec<Model>, ClientError> {
        let request = UnpinRequest { name: name.to_owned() };
        Ok(self.models.clone().unpin(request).await?.into_inner().models)
    }

    /// Pins the version that served before, or the next older one, and ends a canary.
    pub async fn rollback(&self, name: &str) -> Result<Vec<Model>, ClientError> {
        let request = RollbackRequest { name: name.to_owned() };
        Ok(self.models.clone().rollback(request).await?.into_inner().models)
    }

    /// Has a second version serve `percent` of the graphs, 1 to 100; 0 ends the canary.
    pub async fn set_canary(
        &self,
        name: &str,
        version: u64,
        percent: u32,
    ) -> Result<Vec<Model>, ClientError> {
        let request = SetCanaryRequest { name: name.to_owned(), version, percent };
        Ok(self.models.clone().set_canary(request).await?.into_inner().models)
    }
}
