//! The services of each listener, and the layers that every call passes.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    middleware::{from_fn, from_fn_with_state},
};
use hlorank_proto::{
    FILE_DESCRIPTOR_SET,
    received::cost_model_service_server::CostModelServiceServer,
    v1::{
        model_admin_service_server::ModelAdminServiceServer,
        model_service_server::ModelServiceServer,
    },
};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tonic::service::Routes;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_reflection::{pb, server::Builder};
use tower::ServiceBuilder;

use crate::{
    compute::ComputePool,
    handlers::{CostModel, ModelAdmin, Models},
    layers::{CallAdmission, CallerChecks, admit, check_caller, end_at_deadline, explain},
    quality::LiveQuality,
    registry::Registry,
    security::Credentials,
    serve_connection::Http,
    start_error::StartError,
    telemetry::{Observer, observe},
    translations::{DeliverySettings, translate_json},
};

/// What the routers of all listeners share.
pub(crate) struct Routers<'a, H: Health> {
    pub(crate) delivery: DeliverySettings,
    pub(crate) cost_model: &'a CostModel,
    pub(crate) pool: &'a Arc<ComputePool>,
    pub(crate) credentials: &'a Credentials,
    pub(crate) observer: Arc<Observer>,
    pub(crate) registry: &'a Arc<Registry>,
    pub(crate) quality: &'a Arc<LiveQuality>,
    pub(crate) health: HealthServer<H>,
}

const COST_MODEL: &str = "hlorank.v1.CostModelService";
const MODELS: &str = "hlorank.v1.ModelService";
const MODEL_ADMIN: &str = "hlorank.v1.ModelAdminService";
const HEALTH: &str = "grpc.health.v1.Health";
const REFLECTION: [&str; 2] = [
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];

/// Size of the HTTP/2 window of a connection in windows of a call, so that a stream whose client reads no scores does not
/// block other calls.
const CONNECTION_WINDOWS: u32 = 4;

/// The smallest HTTP/2 window of a connection. The transport tolerates small frames that nobody has read yet up to half of it,
/// 256 bytes for each, and [`Connection`](crate::security::Connection) passes on fewer at a time.
const MIN_CONNECTION_WINDOW: u32 = 4 << 20;

/// Maximum number of times that a connection may make the server reset a call. The default, 1,024, is reached by an honest
/// client whose calls are rejected before their messages arrive.
const MAX_RESETS: usize = 1 << 17;

/// Interval of keep-alive pings, and maximum time until their answer. Without them a client that vanished in the middle of
/// a stream would count against the limits forever.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Time that a client of HTTP/1.1 has to send the headers of its next call.
const HTTP1_HEADERS: Duration = Duration::from_secs(75);

/// Maximum size of the headers of a call: names, values and 32 bytes for each.
const MAX_HEADER_BYTES: u32 = 16 << 10;

/// Maximum number of open calls of a connection. Clients hold back further calls.
const MAX_CONNECTION_CALLS: u32 = 200;

impl<H: Health> Routers<'_, H> {
    /// Returns the services of the gRPC listener.
    pub(crate) fn calls(&self) -> Result<Router, StartError> {
        // Messages of the other services are small, and keep the default maximum of the transport.
        let max_bytes = self.delivery.max_message_bytes;
        let cost_model = CostModelServiceServer::new(self.cost_model.clone());
        let routes = Routes::default()
            .add_service(cost_model.max_decoding_message_size(max_bytes))
            .add_service(ModelServiceServer::new(self.models()))
            .add_service(self.health.clone());
        let services = [COST_MODEL, MODELS, HEALTH];
        Ok(self.layered(with_reflection(routes, &services)?))
    }

    /// Returns the services of the admin listener.
    pub(crate) fn admin(&self) -> Result<Router, StartError> {
        let routes = Routes::default()
            .add_service(ModelAdminServiceServer::new(ModelAdmin(self.models())))
            .add_service(ModelServiceServer::new(self.models()))
            .add_service(self.health.clone());
        Ok(self.layered(with_reflection(routes, &[MODEL_ADMIN, MODELS, HEALTH])?))
    }

    fn models(&self) -> Models {
        Models {
            registry: Arc::clone(self.registry),
            quality: Arc::clone(self.quality),
        }
    }

    /// Returns the HTTP settings of the gRPC and admin listeners.
    pub(crate) fn http(&self) -> Http {
        // The other half is what the server reads ahead of a stream.
        let window = self.delivery.stream_window_bytes;
        let mut http = Http::new(TokioExecutor::new());
        // For JSON alone.
        http.http1()
            .timer(TokioTimer::new())
            .header_read_timeout(HTTP1_HEADERS)
            .max_buf_size(MAX_HEADER_BYTES as usize);
        http.http2()
            .timer(TokioTimer::new())
            .initial_connection_window_size(
                (CONNECTION_WINDOWS * window).max(MIN_CONNECTION_WINDOW),
            )
            .initial_stream_window_size(window / 2)
            .keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE)
            .max_concurrent_streams(MAX_CONNECTION_CALLS)
            .max_local_error_reset_streams(MAX_RESETS)
            .max_header_list_size(MAX_HEADER_BYTES);
        http
    }

    /// Wraps services in the layers that every call passes, here from the outside to the inside. The module of the layers says
    /// why they have this order.
    fn layered(&self, routes: Routes) -> Router {
        let admission = CallAdmission {
            admission: Arc::clone(&self.cost_model.admission),
            pool: Arc::clone(self.pool),
            settings: self.delivery,
        };
        let checks = CallerChecks {
            hosts: self.credentials.allowed_hosts(),
            tokens: self.credentials.token_check(),
            proxies: self.credentials.trusted_proxies(),
        };
        // The router boxes what it is given, and a call clones every box below a layer, so it is given all layers at once.
        let layers = ServiceBuilder::new()
            .layer(from_fn(translate_json))
            .layer(from_fn_with_state(Arc::clone(&self.observer), observe))
            .layer(from_fn(end_at_deadline))
            .layer(from_fn(explain))
            .layer(from_fn_with_state(checks, check_caller))
            .layer(from_fn_with_state(admission, admit));
        routes.prepare().into_axum_router().layer(layers)
    }
}

/// Adds the reflection services, which describe these services, themselves and the details of errors.
fn with_reflection(routes: Routes, services: &[&str]) -> Result<Routes, StartError> {
    let described = || {
        let sets = [
            FILE_DESCRIPTOR_SET,
            tonic_types::pb::FILE_DESCRIPTOR_SET,
            tonic_health::pb::FILE_DESCRIPTOR_SET,
            pb::v1::FILE_DESCRIPTOR_SET,
            pb::v1alpha::FILE_DESCRIPTOR_SET,
        ];
        let builder = sets.into_iter().fold(
            Builder::configure(),
            Builder::register_encoded_file_descriptor_set,
        );
        let listed = services.iter().copied().chain(REFLECTION);
        listed.fold(builder, Builder::with_service_name)
    };
    let routes = routes.add_service(described().build_v1()?);
    Ok(routes.add_service(described().build_v1alpha()?))
}
