//! Ctrl-C and SIGTERM.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::FailureKind;

/// A flag that the first SIGINT or SIGTERM sets; a second one ends the process at once.
///
/// # Errors
/// The system refused the handlers.
pub fn watch() -> io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let exit_code = i32::from(FailureKind::Interrupted.exit_code());
    for signal in [SIGINT, SIGTERM] {
        // Handlers run in the order they were registered: the exit sees the flag of an *earlier* signal only.
        flag::register_conditional_shutdown(signal, exit_code, Arc::clone(&interrupted))?;
        flag::register(signal, Arc::clone(&interrupted))?;
    }
    Ok(interrupted)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn signal_sets_the_flag() {
        let interrupted = watch().unwrap();
        assert!(!interrupted.load(Ordering::SeqCst));
        signal_hook::low_level::raise(SIGTERM).unwrap();
        assert!(interrupted.load(Ordering::SeqCst));
    }
}
