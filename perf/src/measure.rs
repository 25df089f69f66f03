//! Numbers of repeated measurements.

/// The middle of what was measured; 0 of nothing.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// The middle of the ratios of what was measured in the same rounds; `None` where there is no other to compare with.
pub fn median_ratio(values: &[f64], others: &[f64]) -> Option<f64> {
    let ratios: Vec<f64> = values
        .iter()
        .zip(others)
        .filter(|(_, other)| **other > 0.0)
        .map(|(value, other)| value / other)
        .collect();
    (!ratios.is_empty()).then(|| median(ratios))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_the_middle_and_of_nothing_it_is_zero() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]).to_bits(), 2f64.to_bits());
        assert_eq!(median(vec![]).to_bits(), 0f64.to_bits());
    }

    #[test]
    fn ratios_are_those_of_the_same_round() {
        // A machine that was slow in one round was slow for both.
        assert_eq!(median_ratio(&[10.0, 5.0, 20.0], &[20.0, 10.0, 40.0]), Some(0.5));
        assert_eq!(median_ratio(&[1.0], &[]), None);
        assert_eq!(median_ratio(&[1.0], &[0.0]), None);
    }
}
