use std::{path::Path, sync::Arc};

use hlorank_graph::{Digest, NamedFeatureSet};

use super::{
    Artifact, Manifest, ModelKind, Rejection,
    growth::MemoryGrowth,
    manifest::{HEAD, MODEL},
    onnx,
    segment::{SegmentModel, Sessions},
    sessions::{PerWorker, RunReports},
    whole_graph::WholeGraphModel,
};
use crate::runtime::Runtime;

/// A loaded model: its artifact, and sessions for each worker.
pub struct Model {
    /// The artifact that it was loaded from.
    pub artifact: Artifact,
    /// The model as its kind is evaluated.
    pub loaded: LoadedModel,
}

/// A loaded model of its kind.
#[derive(Clone)]
pub enum LoadedModel {
    /// Evaluated segment by segment.
    Segment(Arc<SegmentModel>),
    /// Evaluated with the whole graph.
    WholeGraph(Arc<WholeGraphModel>),
    /// Nothing is evaluated.
    Absent,
}

impl Model {
    /// Loads and checks the artifact in a version's folder, with sessions for `workers` workers. Runs are not
    /// reported.
    pub fn load(folder: &Path, runtime: &Runtime, workers: usize) -> Result<Self, Rejection> {
        let artifact = Artifact::read(folder, None)?;
        Self::new(artifact, runtime, workers, RunReports::none())
    }

    /// Makes the sessions of an artifact for `workers` workers. Runs that go wrong are reported.
    pub fn new(
        artifact: Artifact,
        runtime: &Runtime,
        workers: usize,
        reports: RunReports,
    ) -> Result<Self, Rejection> {
        let facts = artifact.facts();
        let session = |file: &'static str| {
            let session = runtime.session(artifact.onnx(file)?);
            session.map_err(|error| Rejection::new("SESSION_FAILED", format!("{file}: {error}")))
        };
        let loaded = match artifact.manifest.kind.clone() {
            ModelKind::Segment(settings) => {
                // Nothing replaces the thread of a receiver whose run hangs.
                let receivers = usize::from(onnx::is_bounded(artifact.onnx(HEAD)?));
                let heads = PerWorker::new(workers + receivers, reports.clone(), || session(HEAD))?;
                let sessions =
                    PerWorker::new(workers, reports, || Sessions::new(session, &settings))?;
                let model = SegmentModel::new(facts, settings, sessions, heads);
                LoadedModel::Segment(Arc::new(model))
            }
            ModelKind::WholeGraph(settings) => {
                let sessions = PerWorker::new(workers, reports, || session(MODEL))?;
                // A segment model needs no estimate, because its blocks have a maximum size. The
                // memory of these runs depends on the graph.
                let features = &artifact.manifest.features;
                let growth =
                    MemoryGrowth::measure(artifact.onnx(MODEL)?, runtime, facts.task, features)?;
                LoadedModel::WholeGraph(Arc::new(WholeGraphModel {
                    facts,
                    settings,
                    growth,
                    sessions,
                }))
            }
            ModelKind::Absent => LoadedModel::Absent,
        };
        Ok(Self { artifact, loaded })
    }

    /// What takes the place of a model if none takes graphs of a feature set: every score is 0.
    pub fn absent(set: Arc<NamedFeatureSet>) -> Self {
        Self {
            artifact: Artifact::absent(Manifest::absent(set)),
            loaded: LoadedModel::Absent,
        }
    }

    /// The manifest of the artifact.
    pub fn manifest(&self) -> &Manifest {
        &self.artifact.manifest
    }

    /// BLAKE3 of the manifest, which holds the digest of every other file.
    pub fn digest(&self) -> Digest {
        self.artifact.digest
    }

    /// The model if it is a segment model.
    pub fn segment(&self) -> Option<&Arc<SegmentModel>> {
        match &self.loaded {
            LoadedModel::Segment(model) => Some(model),
            LoadedModel::WholeGraph(_) | LoadedModel::Absent => None,
        }
    }
}
