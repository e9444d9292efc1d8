use std::{fmt::Display, sync::Arc};

use super::{Session, class_of};
use crate::{
    compute::Class,
    graphs::Warning,
    session::{
        SentMeasurements, SessionError, WantedStored,
        adapt::{Learned, Lesson, Pooled, learn, learning_bytes, points_of_measured, prior_of},
        judge::judge,
        measurements::ADAPT,
        stored::{Measured, join},
    },
    store::{Chosen, Measurement, Reporter, Subject},
};

impl Session {
    /// Learns from measured configurations, and from stored ones if the call asks for them. All that is scored afterwards
    /// is adapted to them.
    pub(crate) async fn adapt(
        &mut self,
        sent: SentMeasurements,
        wanted: WantedStored,
    ) -> Result<(), SessionError> {
        let SentMeasurements {
            target,
            batch,
            outcomes,
            ids,
        } = sent;
        let (graph, engine) = (Arc::clone(&self.graph), Arc::clone(self.sessions.engine()));
        let pool = engine.pool();
        let sent = match batch {
            None => None,
            Some(batch) => {
                let (class, read) = (
                    self.accept(&batch, ADAPT.batch)?,
                    self.reader(batch, ADAPT.batch),
                );
                Some(pool.run(class, move |_| read()).await?.value?)
            }
        };
        let client = self.call.client.reporter.clone();
        let reporter = (wanted == WantedStored::Own).then(|| client.clone());
        let stored = match wanted {
            WantedStored::Nothing => None,
            WantedStored::Own | WantedStored::All => self.stored(&target, reporter.clone()).await,
        };
        // A store that failed is not asked again.
        let uses_pool = stored.is_some();
        let stored = stored.unwrap_or_default();
        let is_quick = stored.is_empty();
        let columns = self.columns();
        let join = move || join((&graph, columns), (sent, &client), outcomes, &ids, stored);
        let (measured, unusable) = if is_quick {
            join()
        } else {
            pool.run(Class::Bulk, move |_| join()).await?.value
        };
        if let Some(error) = unusable {
            self.warn_of_store(&error);
        }
        let pooled = if uses_pool {
            self.pooled(&target, reporter).await
        } else {
            None
        };
        self.learned = Some(match measured {
            None => Learned::nothing(target, pooled),
            Some(measured) => self.learn(target, measured, pooled).await?,
        });
        Ok(())
    }

    /// Returns the stored measurements of a target, of one reporter if one is given. If they cannot be read, the call goes on
    /// without them.
    async fn stored(
        &mut self,
        target: &str,
        reporter: Option<Reporter>,
    ) -> Option<Vec<Measurement>> {
        let subject = Subject {
            target: target.to_owned(),
            graph: self.graph.hash,
        };
        let chosen = Chosen::of_subject(&subject).by(reporter);
        let stored = self
            .sessions
            .stored(&self.call, (&self.graph, self.columns()), &chosen)
            .await;
        stored.map_err(|error| self.warn_of_store(&error)).ok()
    }

    pub(in crate::session) fn warn_of_store(&mut self, error: &dyn Display) {
        let message = format!("stored measurements were not used: {error}");
        self.warnings.push(Warning {
            reason: "STORED_MEASUREMENTS_UNUSED",
            message,
        });
    }

    async fn learn(
        &mut self,
        target: String,
        measured: Measured,
        pooled: Option<Pooled>,
    ) -> Result<Learned, SessionError> {
        let engine = Arc::clone(self.sessions.engine());
        let configurations = Arc::clone(&measured.configurations);
        let class = class_of(configurations.len());
        let evaluation = engine
            .score(&self.model, &self.graph, configurations, self.terms(class))
            .await?;
        let held = engine.memory().hold(learning_bytes(
            measured.configurations.len(),
            self.graph.slots(),
        ))?;
        let (unit, measured) = (self.model.manifest().unit(), Arc::new(measured));
        let (own, pool) = (
            Arc::clone(&measured),
            pooled.as_ref().and_then(|pooled| pooled.pool.clone()),
        );
        let points = move |_| {
            points_of_measured(
                &own.configurations,
                &evaluation.scores,
                (unit, pool.as_deref()),
            )
        };
        let points = Arc::new(engine.pool().run(Class::Bulk, points).await?.value);
        let prior = prior_of(&measured, unit, pooled.as_ref());
        let cache = Arc::clone(self.sessions.adapted());
        let judged = judge(engine.pool(), &cache, prior, &measured, &points).await?;
        self.warnings.extend(judged.warning(&self.call.client));
        let lesson = Lesson {
            target,
            pooled,
            judged,
            held,
        };
        let learn = move |_| learn(&cache, prior, (&measured, points), lesson);
        Ok(engine.pool().run(Class::Bulk, learn).await?.value)
    }
}
