//! What most tests and benchmarks use, to be imported whole.

pub use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fs,
    fs::File,
    io::BufReader,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

pub use fastrand::Rng;
pub use hlorank_client::{
    Adapt, Client, ClientError, Connection, GraphHandle, MeasuredOutcome, RankRequest, Ranking,
    StreamRequest, SuggestRequest,
};
pub use hlorank_graph::{
    Configurations, Digest, FEATURES, FeatureGraph, FusionBatch, GoldenCase, GraphError, GraphFile,
    HloModule, LayoutBatch, LayoutBatchBuilder, LayoutEntry, Limits, MeasuredGraph,
    NodeFeatureBatch, Pad, SegmentedGraph, Task, TileBatch, TileConfiguration,
};
pub use hlorank_proto::{
    v1::{
        ConfigBatch, DeleteMeasurementsRequest, DeltaLayoutConfigs, GetModelRequest, Graph,
        GraphFeatures, LayoutConfig, LayoutConfigs, LayoutTable, ListMeasurementsRequest,
        ListModelsRequest, MeasurementFailure, ModelSelector, ModelState, NodeFeatureConfigs,
        NodeLayout, PackedLayoutConfigs, PackedTileConfigs, PutGraphRequest, RankConfigsRequest,
        RankConfigsResponse, RankConfigsStart, RankConfigsStreamRequest, RankConfigsStreamResponse,
        ReloadRequest, ReportMeasurementsRequest, SuggestConfigsRequest, TensorLayout, TileConfig,
        TileConfigs, config_batch::Configs, cost_model_service_client::CostModelServiceClient,
        graph::Source, model_admin_service_client::ModelAdminServiceClient,
        model_service_client::ModelServiceClient,
    },
    xla::{HloComputationProto, HloInstructionProto, HloModuleProto},
};
pub use prost::{Message, bytes::Bytes};
pub use serde_json::{Value, json};
pub use tempfile::TempDir;
pub use tokio::{
    runtime::Runtime,
    task::{JoinHandle, JoinSet},
    time::{sleep, timeout},
};
pub use tonic::{
    Code, Request, Status,
    transport::{Channel, Endpoint},
};
pub use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
pub use tonic_types::StatusExt;

pub use crate::{
    module::{computation, instruction, module, operation, single, two_dots},
    security::{Authority, Files, Pair, over_tls, token_line},
    subject::{MODEL, Subject, question, rankings},
    *,
};
