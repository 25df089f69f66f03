//! Where a run takes place.

use std::sync::atomic::AtomicBool;

use crate::failure::Failure;
use crate::loopback::Loop;
use crate::null;
use crate::outcome::Outcome;
use crate::pair;
use crate::plan::{Device, Plan};
use crate::progress::Progress;

/// What the user has of a run while it goes on.
pub struct Stage<'a> {
    /// Set when the user wants it to stop.
    pub interrupted: &'a AtomicBool,
    /// How far it is.
    pub progress: &'a mut Progress,
    /// Shows what is going to run, once that is known.
    pub banner: &'a dyn Fn(&Plan) -> Result<(), Failure>,
    /// Shows a line before it.
    pub line: &'a dyn Fn(&str) -> Result<(), Failure>,
    /// Shows a remark.
    pub note: &'a dyn Fn(&str),
}

/// Carries out `plan` on its device until it is done or interrupted.
///
/// # Errors
/// The transfer failed, or the machine cannot run it.
pub fn run(plan: &Plan, stage: &mut Stage<'_>) -> Result<Outcome, Failure> {
    match &plan.device {
        Device::Loop => {
            (stage.banner)(plan)?;
            Loop::start(plan)?.run(plan, stage.interrupted, stage.progress)
        }
        Device::Null => null::run(plan, stage),
        Device::Link(link) => pair::run(plan, link, stage),
    }
}
