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

/// Carries out `plans`, one after the other on one device, until they are done or interrupted. `row`: takes what each
/// brought.
///
/// # Errors
/// The transfer failed, the machine cannot run it, or `row` says so.
pub fn run(
    plans: &[Plan],
    stage: &mut Stage<'_>,
    row: &mut dyn FnMut(&Plan, Outcome) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let Some(first) = plans.first() else { return Ok(()) };
    match &first.device {
        Device::Loop => {
            (stage.banner)(first)?;
            let the_loop = Loop::start(first)?;
            for plan in plans {
                stage.progress.begin(plan);
                let outcome = the_loop.run(plan, stage.interrupted, stage.progress)?;
                let interrupted = outcome.interrupted;
                row(plan, outcome)?;
                if interrupted {
                    break;
                }
            }
            Ok(())
        }
        Device::Null => null::run(plans, stage, row),
        Device::Link(link) => pair::run(plans, link, stage, row),
    }
}
