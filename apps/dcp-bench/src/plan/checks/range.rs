//! A number and its range.

use crate::failure::Failure;

/// Refuses an option's value outside of `least` … `most`.
pub(super) fn in_range(option: &str, value: u64, least: u64, most: u64) -> Result<(), Failure> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Failure::usage(format!("{option} is {value}, but must be {least} to {most}")))
}
