//! Ctrl-C and SIGTERM.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

use crate::failure::FailureKind;

/// A flag that the first SIGINT or SIGTERM sets. At a second one, a thread of its own says the `last_words` and ends the
/// process; should they be stuck, in a pipe that nobody reads, a third one ends it at once.
///
/// # Errors
/// The system refused the handlers or the thread.
pub fn watch(last_words: impl FnOnce() + Send + 'static) -> io::Result<Arc<AtomicBool>> {
    let exit_code = i32::from(FailureKind::Interrupted.exit_code());
    let (interrupted, leaving) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, exit_code, Arc::clone(&leaving))?;
        flag::register(signal, Arc::clone(&interrupted))?;
    }
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        // The first one has only its flag to set.
        if signals.forever().nth(1).is_some() {
            leaving.store(true, Ordering::SeqCst);
            last_words();
            low_level::exit(exit_code);
        }
    })?;
    Ok(interrupted)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn signal_sets_the_flag() {
        let interrupted = watch(|| {}).unwrap();
        assert!(!interrupted.load(Ordering::SeqCst));
        signal_hook::low_level::raise(SIGTERM).unwrap();
        assert!(interrupted.load(Ordering::SeqCst));
    }
}
