use std::{fmt::Display, sync::Arc};

use super::{Session, class_of};
use crate::{
    compute::Class,
    graphs::Warning,
    session::{
        SentMeasurements, SessionError,
        adapt::{Learned, Pooled, learn, learning_bytes},
        measurements::ADAPT,
        stored::{Measured, join},
    },
    store::Measurement,
};

impl Session {
    /// Learns from measured configurations, and from stored ones if the call asks for them. All that is scored afterwards
    /// is adapted to them.
    pub(crate) async fn adapt(
        &mut self,
        sent: SentMeasurements,
        use_stored: bool,
    ) -> Result<(), SessionError> {
        let SentMeasurements { target, batch, outcomes, ids } = sent;
        let (graph, engine) = (Arc::clone(&self.graph), Arc::clone(self.sessions.engine()));
        let pool = engine.pool();
        let sent = match batch {
            None => None,
            Some(batch) => {
                let (class, read) = (self.accept(&batch, ADAPT.batch)?, self.reader(batch, ADAPT.batch));
                Some(pool.run(class, move |_| read()).await?.value?)
            }
        };
        let stored = if use_stored { self.stored(&target).await } else { None };
        // A store that failed is not asked again.
        let uses_pool = stored.is_some();
        let stored = stored.unwrap_or_default();
        let is_quick = stored.is_empty();
        let columns = self.columns();
        let join = move || join((&graph, columns), sent, outcomes, &ids, stored);
        let (measured, unusable) =
            if is_quick { join() } else { pool.run(Class::Bulk, move |_| join()).await?.value };
        if let Some(error) = unusable {
            self.warn_of_store(&error);
        }
        let pooled = if uses_pool { self.pooled(&target).await } else { None };
        self.learned = Some(match measured {
            None => Learned::nothing(target, pooled),
            Some(measured) => self.learn(target, measured, pooled).await?,
        });
        Ok(())
    }

    /// Returns the stored measurements of a target. If they cannot be read, the call goes on without them.
    async fn stored(&mut self, target: &str) -> Option<Vec<Measurement>> {
        let stored = self.sessions.stored(&self.call, (&self.graph, self.columns()), target).await;
        stored.map_err(|error| self.warn_of_store(&error)).ok()
    }

    pub(in crate::session) fn warn_of_store(&mut self, error: &dyn Display) {
        let message = format!("stored measurements were not used: {error}");
        self.warnings.push(Warning { reason: "STORED_MEASUREMENTS_UNUSED", message });
    }

    async fn learn(
        &self,
        target: String,
        measured: Measured,
        pooled: Option<Pooled>,
    ) -> Result<Learned, SessionError> {
        let engine = self.sessions.engine();
        let configurations = measured.configurations.clone();
        let class = class_of(configurations.len());
        let read = move || Ok::<_, SessionError>(configurations);
        let evaluation = engine.score(&self.model, &self.graph, read, self.terms(class)).await?;
        let held = engine.memory().hold(learning_bytes(measured.configurations.len(), self.graph.slots()))?;
        let unit = self.model.manifest().unit();
        let cache = Arc::clone(self.sessions.adapted());
        let learn = move || learn(&cache, target, &measured, (&evaluation, unit), pooled, held);
        Ok(engine.pool().run(Class::Bulk, move |_| learn()).await?.value)
    }
}
