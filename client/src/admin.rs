use hlorank_proto::v1::{
    Model, PinRequest, ReloadRequest, RollbackRequest, SetCanaryRequest, UnpinRequest,
    model_admin_service_client::ModelAdminServiceClient,
};
use tonic::{Request, Response, Status, transport::Channel};

use crate::{Address, ClientError, Connection, Token, credentials::request, replicas::each};

/// A connection to the admin listener of a server, for changing which model versions serve. Clones share it.
///
/// Each call returns every version of the model once the change is in effect. Calls are not retried, because a repeated
/// call may change more, and have no deadline, because loading a model may take long.
#[derive(Clone, Debug)]
pub struct AdminClient {
    models: ModelAdminServiceClient<Channel>,
    address: Address,
    token: Option<Token>,
}

impl AdminClient {
    /// Connects to the admin listener of a server, such as `http://127.0.0.1:7072`.
    pub async fn connect(endpoint: &str, connection: Connection) -> Result<Self, ClientError> {
        Self::connect_address(&endpoint.parse()?, &connection).await
    }

    /// Connects to the admin listeners of several servers. A name with several addresses stands for as many servers. Returns
    /// their addresses and clients, or why there is none.
    pub async fn connect_each(
        endpoints: impl IntoIterator<Item = impl AsRef<str>>,
        connection: &Connection,
    ) -> Result<Vec<(String, Result<Self, ClientError>)>, ClientError> {
        let connect = async |address: &Address| Self::connect_address(address, connection).await;
        each(endpoints, connect).await
    }

    async fn connect_address(
        address: &Address,
        connection: &Connection,
    ) -> Result<Self, ClientError> {
        let channel = connection.endpoint(address)?.connect().await;
        let channel =
            channel.map_err(|source| ClientError::no_connection(&address.to_string(), &source))?;
        Ok(Self {
            models: ModelAdminServiceClient::new(channel),
            address: address.clone(),
            token: connection.token.clone(),
        })
    }

    /// Looks for new versions immediately, retries rejected ones, and returns every version of every model.
    pub async fn reload(&self) -> Result<Vec<Model>, ClientError> {
        let request = self.request(ReloadRequest {});
        let answer = self.models.clone().reload(request).await;
        Ok(self.read(answer).await?.models)
    }

    /// Pins a version: it serves even if newer ones exist, also after a restart.
    pub async fn pin(&self, name: &str, version: u64) -> Result<Vec<Model>, ClientError> {
        let request = PinRequest {
            name: name.to_owned(),
            version,
        };
        let answer = self.models.clone().pin(self.request(request)).await;
        Ok(self.read(answer).await?.models)
    }

    /// Removes the pin and the canary, so that the newest valid version serves every graph.
    pub async fn unpin(&self, name: &str) -> Result<Vec<Model>, ClientError> {
        let request = UnpinRequest {
            name: name.to_owned(),
        };
        let answer = self.models.clone().unpin(self.request(request)).await;
        Ok(self.read(answer).await?.models)
    }

    /// Pins the version that served before, or else the next older one, and ends a canary.
    pub async fn rollback(&self, name: &str) -> Result<Vec<Model>, ClientError> {
        let request = RollbackRequest {
            name: name.to_owned(),
        };
        let answer = self.models.clone().rollback(self.request(request)).await;
        Ok(self.read(answer).await?.models)
    }

    /// Makes a second version serve `percent` of the graphs, 1 to 100; 0 ends the canary.
    pub async fn set_canary(
        &self,
        name: &str,
        version: u64,
        percent: u32,
    ) -> Result<Vec<Model>, ClientError> {
        let request = SetCanaryRequest {
            name: name.to_owned(),
            version,
            percent,
        };
        let answer = self.models.clone().set_canary(self.request(request)).await;
        Ok(self.read(answer).await?.models)
    }

    async fn read<T>(&self, answer: Result<Response<T>, Status>) -> Result<T, ClientError> {
        match answer {
            Ok(answer) => Ok(answer.into_inner()),
            Err(status) => {
                let error = ClientError::of_call(&self.address.to_string(), status);
                Err(self.address.explain(error).await)
            }
        }
    }

    /// Returns a request that carries the token.
    fn request<T>(&self, message: T) -> Request<T> {
        request(message, self.token.as_ref())
    }
}
