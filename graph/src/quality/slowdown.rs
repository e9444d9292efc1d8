use super::outcome::Outcome;

/// Returns how much slower the fastest of the `top` best-ranked configurations is than the fastest of all: 0.1 is 10 %.
/// Configurations with equal scores rank by number. Returns `None` without configurations, or if `top` is 0.
#[must_use]
pub fn top_slowdown(outcomes: &[Outcome], top: usize) -> Option<f64> {
    let mut ranked: Vec<&Outcome> = outcomes.iter().collect();
    // The sort is stable, so equal scores stay in the order of their numbers.
    ranked.sort_by(|one, other| one.score.total_cmp(&other.score));
    let chosen = fastest(ranked.into_iter().take(top))?;
    Some(chosen / fastest(outcomes)? - 1.0)
}

/// Returns how much slower the compiler's default is than the fastest configuration, given the run time of the default.
#[must_use]
pub fn default_slowdown(outcomes: &[Outcome], default_run_time: f64) -> Option<f64> {
    Some(default_run_time / fastest(outcomes)? - 1.0)
}

fn fastest<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Option<f64> {
    outcomes
        .into_iter()
        .map(|outcome| outcome.run_time)
        .min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTCOMES: [Outcome; 4] = [
        Outcome {
            run_time: 20.0,
            score: 1.0,
        },
        Outcome {
            run_time: 15.0,
            score: 1.0,
        },
        Outcome {
            run_time: 10.0,
            score: 3.0,
        },
        Outcome {
            run_time: 12.0,
            score: 2.0,
        },
    ];

    #[test]
    fn the_fastest_of_the_best_ranked_counts() {
        let slowdown = |top| top_slowdown(&OUTCOMES, top).unwrap();
        assert_eq!(
            [slowdown(1), slowdown(2), slowdown(3), slowdown(4)],
            [1.0, 0.5, 12.0 / 10.0 - 1.0, 0.0]
        );
    }

    #[test]
    fn a_top_beyond_the_number_of_configurations_means_all() {
        assert_eq!(top_slowdown(&OUTCOMES, 100), Some(0.0));
    }

    #[test]
    fn the_slowdown_of_an_empty_ranking_is_undefined() {
        assert_eq!(top_slowdown(&[], 1), None);
        assert_eq!(top_slowdown(&OUTCOMES, 0), None);
    }

    #[test]
    fn the_default_is_compared_with_the_best() {
        assert_eq!(default_slowdown(&OUTCOMES, 15.0), Some(0.5));
    }
}
