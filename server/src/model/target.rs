//! What models were trained for, and what configurations are chosen for.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

/// What run times are measured on: hardware, compiler and flags. Its canonical text is `HARDWARE, COMPILER VERSION, FLAG, ...`,
/// such as `AMD EPYC, IREE 3.13.0, 1 thread`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The processor, such as `AMD EPYC`.
    pub hardware: String,
    /// The name of the compiler, one word, such as `IREE`.
    pub compiler: String,
    /// Its version; empty for any.
    #[serde(default)]
    pub version: String,
    /// What else changes run times, such as `1 thread`.
    #[serde(default)]
    pub flags: Vec<String>,
}

/// How well a model suits a target, the best last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TargetMatch {
    /// All its targets have other compilers, whose configurations mean something else, or the target names no compiler.
    OtherCompiler,
    /// Its manifest does not name targets, or nothing names the target.
    Unknown,
    /// It was trained for the compiler, on other hardware.
    OtherHardware,
    /// It was trained for the compiler and the hardware. Versions and flags may differ.
    Same,
}

/// What separates the parts of a target's text.
const SEPARATOR: &str = ", ";

/// Maximum number of targets of a model, and of bytes of the text of one. [`Target::EXPECTED`] names both.
const MAX_TARGETS: usize = 16;
const MAX_BYTES: usize = 256;

impl Target {
    /// Reads the canonical text; `None` if it names no compiler. Any other text names hardware alone.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(SEPARATOR).map(str::trim);
        let hardware = parts.next()?;
        let compiler = parts.next()?;
        // A version may have several words: `XLA of jax 0.10.2`.
        let (name, version) = compiler.split_once(' ').unwrap_or((compiler, ""));
        let target = Self {
            hardware: hardware.to_owned(),
            compiler: name.to_owned(),
            version: version.to_owned(),
            flags: parts.map(str::to_owned).collect(),
        };
        let is_named = !target.hardware.is_empty() && !target.compiler.is_empty();
        is_named.then_some(target)
    }

    /// What the manifest's field `targets` must be.
    pub(super) const EXPECTED: &str = "a list of 1 to 16 objects with hardware and compiler, and with version and flags if they \
                                       matter; the compiler is one word, no part contains a comma, and the text of a target has \
                                       at most 256 bytes";

    /// Reads the manifest's field `targets`; `None` if it is not as expected.
    pub(super) fn read_all(written: &Value) -> Option<Vec<Self>> {
        let targets = Vec::<Self>::deserialize(written).ok()?;
        let is_sound = |target: &Self| {
            let text = target.to_string();
            // Calls name a target by its text, so that the text must stand for this target alone.
            Self::parse(&text).as_ref() == Some(target) && text.len() <= MAX_BYTES
        };
        let is_valid = (1..=MAX_TARGETS).contains(&targets.len()) && targets.iter().all(is_sound);
        is_valid.then_some(targets)
    }

    /// How well a model of these targets suits this one.
    pub fn suited_by(&self, trained: &[Self]) -> TargetMatch {
        let of = |other: &Self| {
            // A compiler is the same whatever its version and backend: `XLA:CPU` is XLA.
            let [own, others] = [self, other].map(|target| {
                let name = target.compiler.split_once(':');
                name.map_or(target.compiler.as_str(), |(name, _)| name)
            });
            if !own.eq_ignore_ascii_case(others) {
                TargetMatch::OtherCompiler
            } else if self.hardware.eq_ignore_ascii_case(&other.hardware) {
                TargetMatch::Same
            } else {
                TargetMatch::OtherHardware
            }
        };
        // Its best target decides: to be trained for further ones is no drawback.
        trained.iter().map(of).max().unwrap_or(TargetMatch::Unknown)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{SEPARATOR}{}", self.hardware, self.compiler)?;
        if !self.version.is_empty() {
            write!(formatter, " {}", self.version)?;
        }
        self.flags
            .iter()
            .try_for_each(|flag| write!(formatter, "{SEPARATOR}{flag}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Target {
        Target::parse(text).unwrap()
    }

    #[test]
    fn the_canonical_text_is_read_back() {
        for text in [
            "AMD EPYC, IREE 3.13.0, 1 thread",
            "Intel(R) Xeon(R) Processor, XLA of jax 0.10.2, 1 thread, --xla_cpu_use_thunk_runtime=false",
            "TPU v3, XLA",
        ] {
            assert_eq!(target(text).to_string(), text);
        }
        let xla = target("Intel(R) Xeon(R) Processor, XLA of jax 0.10.2, 1 thread");
        assert_eq!(
            (xla.compiler.as_str(), xla.version.as_str()),
            ("XLA", "of jax 0.10.2")
        );
    }

    #[test]
    fn text_without_a_compiler_is_no_target() {
        for text in ["", "my board", "my board, ", ", IREE 3.13.0"] {
            assert_eq!(Target::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_model_suits_the_target_that_is_nearest() {
        let trained = [target("AMD EPYC, IREE 3.13.0"), target("TPU v3, XLA")];
        let suits = |text| target(text).suited_by(&trained);
        assert_eq!(suits("amd epyc, iree 3.14.0, 4 threads"), TargetMatch::Same);
        assert_eq!(suits("Apple M4, IREE 3.13.0"), TargetMatch::OtherHardware);
        assert_eq!(
            suits("AMD EPYC, XLA of jax 0.10.2"),
            TargetMatch::OtherHardware
        );
        assert_eq!(suits("AMD EPYC, gcc 12.2"), TargetMatch::OtherCompiler);
        assert_eq!(suits("TPU v3, xla:tpu 0.10"), TargetMatch::Same);
        assert_eq!(suits("AMD EPYC, XLAX"), TargetMatch::OtherCompiler);
        assert_eq!(target("a, b").suited_by(&[]), TargetMatch::Unknown);
    }
}
