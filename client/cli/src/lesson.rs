//! What an answer rests on: measurements that the server learned from, and how far a ranking can be trusted.

use std::fmt::{self, Display, Formatter};

use hlorank_client::v1;
use serde::Serialize;

use super::output::{counted, printable, words};

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
    reporters: Vec<v1::Reporter>,
    /// What related measurements taught.
    sources: Vec<Source>,
    /// What scores rest on.
    rests_on: Vec<String>,
}

/// What related measurements taught: of instances, of kernels, or of the graph on another target.
#[derive(Debug, Serialize)]
struct Source {
    /// What they are of; `None` if this program does not know it.
    kind: Option<String>,
    /// The name of another target; else empty.
    target: String,
    /// Number of instances or kernels.
    lists: u32,
    measured_configurations: u32,
    /// Whether scores rest on it.
    used: bool,
    agreement: f64,
    /// Tau of the model, of kernels.
    model_tau: f64,
    /// Why scores do not rest on it; `None` if they do.
    refusal: Option<&'static str>,
}

impl From<&v1::Adaptation> for Lesson {
    fn from(adaptation: &v1::Adaptation) -> Self {
        let evidence = |evidence: v1::Evidence| words(evidence.as_str_name(), "EVIDENCE_");
        Self {
            target: adaptation.target.clone(),
            measured_configurations: adaptation.measured_configs,
            adapted: adaptation.adapted,
            noise: adaptation.noise,
            leave_one_out_tau: adaptation.leave_one_out_tau,
            zero_shot_tau: adaptation.zero_shot_tau,
            stored_measurements: adaptation.stored_measurements,
            reporters: adaptation.reporters.clone(),
            sources: adaptation.sources.iter().map(Source::from).collect(),
            rests_on: adaptation.rests_on().filter_map(evidence).collect(),
        }
    }
}

impl From<&v1::RelatedSource> for Source {
    fn from(source: &v1::RelatedSource) -> Self {
        Self {
            kind: words(source.kind().as_str_name(), "SOURCE_KIND_"),
            target: source.target.clone(),
            lists: source.lists,
            measured_configurations: source.measured_configs,
            used: source.used,
            agreement: source.agreement,
            model_tau: source.model_tau,
            refusal: match source.refusal() {
                v1::SourceRefusal::Unspecified => None,
                v1::SourceRefusal::TooFewMeasurements => Some("too little was measured"),
                v1::SourceRefusal::UnlikeOthers => Some("the others predict no better than chance"),
                v1::SourceRefusal::NoBetterThanModel => Some("the model does as well"),
                v1::SourceRefusal::Contradicted => {
                    Some("the measurements of this target contradict it")
                }
            },
        }
    }
}

impl Display for Lesson {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        // What was never measured says nothing worth a line.
        for source in self
            .sources
            .iter()
            .filter(|source| source.measured_configurations > 0)
        {
            writeln!(formatter, "{source}")?;
        }
        // A single reporter is this client, or has nobody to differ from.
        if self.reporters.len() > 1 {
            for reporter in &self.reporters {
                writeln!(formatter, "{}", reporter_text(reporter))?;
            }
        }
        let measured = measured(self.measured_configurations);
        if !self.adapted {
            return write!(
                formatter,
                "Nothing was learned from {measured}: at least three different times are needed."
            );
        }
        let target = printable(&self.target);
        let own = self.leave_one_out_tau;
        write!(
            formatter,
            "Learned from {measured} of `{target}`: tau {own:.2} when each is predicted by the others"
        )?;
        if self.rests_on.iter().any(|evidence| evidence == "model") {
            write!(formatter, ", {:.2} by the model alone", self.zero_shot_tau)?;
        }
        formatter.write_str(".")
    }
}

impl Display for Source {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let measured = measured(self.measured_configurations);
        let of = match self.kind.as_deref() {
            Some("instances") => format!("in {}", counted(self.lists as usize, "other instance")),
            Some("kernels") => {
                let kernels = counted(self.lists as usize, "other kernel");
                format!("in {kernels} of this structure")
            }
            _ => format!("of `{}`", printable(&self.target)),
        };
        match self.refusal {
            None => write!(
                formatter,
                "Learned from {measured} {of}, with a tau of {:.2}.",
                self.agreement
            ),
            Some(refusal) => write!(
                formatter,
                "Learned nothing from {measured} {of}: {refusal}."
            ),
        }
    }
}

fn reporter_text(reporter: &v1::Reporter) -> String {
    let name = match reporter.reporter.as_str() {
        "" => "Another client".to_owned(),
        name => format!("`{}`", printable(name)),
    };
    let measured = counted(reporter.measured_configs as usize, "configuration");
    let shared = match reporter.shared_configs {
        0 => String::new(),
        shared => format!(
            "; others measured {shared} of them, too, with times that differ by a factor of {:.2}",
            reporter.times_differ_by
        ),
    };
    format!("{name} measured {measured}{shared}.")
}

/// Returns how far a ranking can be trusted.
pub(crate) fn confidence_text(confidence: &v1::Confidence) -> String {
    let mut parts = Vec::new();
    // The server sets the ends of the interval whenever it sets the tau.
    let interval = confidence
        .expected_tau_low
        .zip(confidence.expected_tau_high);
    if let Some((tau, (low, high))) = confidence.expected_tau.zip(interval) {
        parts.push(format!(
            "expected tau with run times {tau:.2} ({low:.2} to {high:.2})"
        ));
    }
    let slowdown = confidence.expected_slowdown;
    if let Some((expected, upper)) = slowdown.zip(confidence.expected_slowdown_p90) {
        let [expected, upper] = [expected, upper].map(|slowdown| 100.0 * (slowdown - 1.0));
        parts.push(format!(
            "the first is expected {expected:.1} % above the fastest, at most {upper:.1} % nine times of ten"
        ));
    }
    if confidence.unknown_opcodes > 0 {
        let opcodes = counted(confidence.unknown_opcodes as usize, "opcode");
        parts.push(format!("{opcodes} unknown to the models"));
    }
    format!("Confidence: {}.", parts.join("; "))
}

fn measured(configurations: u32) -> String {
    counted(configurations as usize, "measured configuration")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_says_what_is_expected_and_what_is_unknown() {
        let expected = confidence_text(&v1::Confidence {
            expected_tau: Some(0.62),
            expected_tau_low: Some(0.4),
            expected_tau_high: Some(0.84),
            expected_slowdown: Some(1.012),
            expected_slowdown_p90: Some(1.04),
            unknown_opcodes: 1,
        });
        assert_eq!(
            expected,
            "Confidence: expected tau with run times 0.62 (0.40 to 0.84); the first is expected 1.2 % above the fastest, \
             at most 4.0 % nine times of ten; 1 opcode unknown to the models."
        );
    }
}
