//! How evenly queue pairs shared the way.

use serde::Serialize;

/// Rates of queue pairs, compared.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Fairness {
    /// Queue pairs of all clients.
    pub qps: usize,
    /// Slowest over mean: 1 when all are alike.
    pub min_over_mean: f64,
    /// Jain's index, (sum of x)^2 / (n * sum of x^2): 1 when all are alike, 1/n when one has everything.
    pub jain: f64,
}

impl Fairness {
    /// Of rates in any unit; `None` where there are not two, or all are zero.
    pub fn of(rates: &[f64]) -> Option<Self> {
        let sum: f64 = rates.iter().sum();
        if rates.len() < 2 || sum <= 0.0 {
            return None;
        }
        let count = rates.len() as f64;
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
        Some(Self {
            qps: rates.len(),
            min_over_mean: least * count / sum,
            jain: sum * sum / (count * squares),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_shares_are_one_and_a_single_winner_is_one_in_n() {
        assert_eq!(Fairness::of(&[3.0; 4]), Some(Fairness { qps: 4, min_over_mean: 1.0, jain: 1.0 }));
        assert_eq!(
            Fairness::of(&[8.0, 0.0, 0.0, 0.0]),
            Some(Fairness { qps: 4, min_over_mean: 0.0, jain: 0.25 })
        );
        let uneven = Fairness::of(&[1.0, 3.0]).unwrap();
        assert_eq!((uneven.min_over_mean, uneven.jain), (0.5, 0.8));
    }

    #[test]
    fn one_queue_pair_or_none_that_moved_shares_nothing() {
        assert_eq!(Fairness::of(&[1.0]), None);
        assert_eq!(Fairness::of(&[0.0, 0.0]), None);
    }
}
