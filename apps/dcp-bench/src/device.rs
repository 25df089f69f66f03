//! Where a run takes place.

use std::sync::atomic::AtomicBool;

use crate::failure::Failure;
use crate::loopback::Loop;
use crate::outcome::Outcome;
use crate::plan::{Device, Plan};
use crate::progress::Progress;

/// Carries out `plan` on its device until it is done or `interrupted` is set.
///
/// # Errors
/// The transfer failed, or the machine cannot run it.
pub fn run(plan: &Plan, interrupted: &AtomicBool, progress: &mut Progress) -> Result<Outcome, Failure> {
    match plan.device {
        Device::Loop => Loop::start(plan)?.run(plan, interrupted, progress),
    }
}
