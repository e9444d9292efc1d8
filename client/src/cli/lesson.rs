//! What a server learned from measurements.

use std::fmt::{self, Display, Formatter};

use hlorank_client::v1;
use serde::Serialize;

use super::output::{counted, printable};

/// What the server learned from measurements.
#[derive(Debug, Serialize)]
pub(crate) struct Lesson {
    target: String,
    measured_configurations: u32,
    /// Whether scores are predicted logarithms of seconds.
    adapted: bool,
    noise: f64,
    leave_one_out_tau: f64,
    zero_shot_tau: f64,
    /// Stored measurements among them.
    stored_measurements: u32,
    pool: Option<Pool>,
    reporters: Vec<Reporter>,
    /// What each other target taught.
    sources: Vec<Source>,
    /// What scores rest on.
    rests_on: Vec<&'static str>,
}

/// What the measurements on another target taught.
#[derive(Debug, Serialize)]
struct Source {
    target: String,
    measured_configurations: u32,
    /// Whether scores rest on it.
    used: bool,
    agreement: f64,
    /// Why they do not; `None` if they do.
    refusal: Option<&'static str>,
}

/// What one reporter measured.
#[derive(Debug, Serialize)]
struct Reporter {
    /// Empty if this client may not know it.
    reporter: String,
    measured_configurations: u32,
    /// Those of them that other reporters measured, too.
    shared_configurations: u32,
    /// By what factor its times of these differ from those of others.
    times_differ_by: f64,
}

/// What the server learned from kernels of the same structure.
#[derive(Debug, Serialize)]
struct Pool {
    kernels: u32,
    measured_configurations: u32,
    /// Whether scores rest on them.
    used: bool,
    leave_one_out_tau: f64,
    zero_shot_tau: f64,
    /// Why they do not; `None` if they do.
    refusal: Option<&'static str>,
}

impl From<&v1::Adaptation> for Lesson {
    fn from(adaptation: &v1::Adaptation) -> Self {
        Self {
            target: adaptation.target.clone(),
            measured_configurations: adaptation.measured_configs,
            adapted: adaptation.adapted,
            noise: adaptation.noise,
            leave_one_out_tau: adaptation.leave_one_out_tau,
            zero_shot_tau: adaptation.zero_shot_tau,
            stored_measurements: adaptation.stored_measurements,
            pool: adaptation.pool.map(Pool::from),
            reporters: adaptation.reporters.iter().map(Reporter::from).collect(),
            sources: adaptation.sources.iter().map(Source::from).collect(),
            rests_on: adaptation.rests_on().filter_map(evidence).collect(),
        }
    }
}

impl From<&v1::Reporter> for Reporter {
    fn from(reporter: &v1::Reporter) -> Self {
        Self {
            reporter: reporter.reporter.clone(),
            measured_configurations: reporter.measured_configs,
            shared_configurations: reporter.shared_configs,
            times_differ_by: reporter.times_differ_by,
        }
    }
}

impl From<v1::Pool> for Pool {
    fn from(pool: v1::Pool) -> Self {
        Self {
            kernels: pool.graphs,
            measured_configurations: pool.measured_configs,
            used: pool.used,
            leave_one_out_tau: pool.leave_one_out_tau,
            zero_shot_tau: pool.zero_shot_tau,
            refusal: refusal(pool.refusal()),
        }
    }
}

impl From<&v1::TargetSource> for Source {
    fn from(source: &v1::TargetSource) -> Self {
        Self {
            target: source.target.clone(),
            measured_configurations: source.measured_configs,
            used: source.used,
            agreement: source.agreement,
            refusal: source_refusal(source.refusal()),
        }
    }
}

fn source_refusal(refusal: v1::SourceRefusal) -> Option<&'static str> {
    match refusal {
        v1::SourceRefusal::Unspecified => None,
        v1::SourceRefusal::TooFewMeasurements => Some("too little was measured"),
        v1::SourceRefusal::UnlikeOthers => Some("the other targets do not predict it"),
        v1::SourceRefusal::Contradicted => Some("the measurements of this target contradict it"),
    }
}

fn evidence(evidence: v1::Evidence) -> Option<&'static str> {
    match evidence {
        v1::Evidence::Unspecified => None,
        v1::Evidence::Model => Some("model"),
        v1::Evidence::Measurements => Some("measurements"),
        v1::Evidence::OtherKernels => Some("other kernels"),
        v1::Evidence::OtherTargets => Some("other targets"),
    }
}

fn refusal(refusal: v1::PoolRefusal) -> Option<&'static str> {
    match refusal {
        v1::PoolRefusal::Unspecified => None,
        v1::PoolRefusal::TooFewKernels => Some("two kernels are needed"),
        v1::PoolRefusal::NoBetterThanModel => Some("the model does as well"),
        v1::PoolRefusal::NoBetterThanChance => Some("chance may do as well"),
    }
}

impl Display for Pool {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let verb = if self.used {
            "Learned"
        } else {
            "Learned nothing"
        };
        write!(
            formatter,
            "{verb} from {} in {} of this structure: tau {:.2} when each is predicted by the others, {:.2} by the model alone.",
            measured(self.measured_configurations),
            counted(self.kernels as usize, "other kernel"),
            self.leave_one_out_tau,
            self.zero_shot_tau,
        )?;
        self.refusal.map_or(Ok(()), |refusal| {
            write!(formatter, " They are not used: {refusal}.")
        })
    }
}

impl Display for Source {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let measured = measured(self.measured_configurations);
        let target = printable(&self.target);
        match self.refusal {
            None => write!(
                formatter,
                "Learned from {measured} of `{target}`, which agrees by a tau of {:.2}.",
                self.agreement
            ),
            Some(refusal) => write!(
                formatter,
                "Learned nothing from {measured} of `{target}`: {refusal}."
            ),
        }
    }
}

impl Display for Reporter {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if self.reporter.is_empty() {
            formatter.write_str("Another client")?;
        } else {
            write!(formatter, "`{}`", printable(&self.reporter))?;
        }
        let measured = counted(self.measured_configurations as usize, "configuration");
        write!(formatter, " measured {measured}")?;
        if self.shared_configurations > 0 {
            write!(
                formatter,
                "; others measured {} of them, too, with times that differ by a factor of {:.2}",
                self.shared_configurations, self.times_differ_by
            )?;
        }
        formatter.write_str(".")
    }
}

impl Display for Lesson {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for source in &self.sources {
            writeln!(formatter, "{source}")?;
        }
        // A pool without kernels says only that none of this structure were measured.
        if let Some(pool) = &self.pool
            && pool.kernels > 0
        {
            writeln!(formatter, "{pool}")?;
        }
        // A single reporter is this client, or has nobody to differ from.
        if self.reporters.len() > 1 {
            for reporter in &self.reporters {
                writeln!(formatter, "{reporter}")?;
            }
        }
        if self.adapted {
            return self.write_own(formatter);
        }
        let measured = measured(self.measured_configurations);
        write!(
            formatter,
            "Nothing was learned from {measured}: at least three different times are needed."
        )
    }
}

impl Lesson {
    /// Writes what the measurements of the graph itself taught.
    fn write_own(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let measured = measured(self.measured_configurations);
        write!(
            formatter,
            "Learned from {measured} of `{}`: tau {:.2} when each is predicted by the others",
            self.target, self.leave_one_out_tau,
        )?;
        // Older servers do not say what scores rest on. They always had a model.
        let is_without_model = !self.rests_on.is_empty() && !self.rests_on.contains(&"model");
        if is_without_model {
            return write!(formatter, ".");
        }
        write!(formatter, ", {:.2} by the model alone.", self.zero_shot_tau)
    }
}

fn measured(configurations: u32) -> String {
    counted(configurations as usize, "measured configuration")
}
