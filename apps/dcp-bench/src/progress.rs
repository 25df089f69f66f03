//! A progress bar on the terminal.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::plan::Plan;

/// Shows how far a run is; does nothing unless stderr is a terminal.
pub struct Progress {
    bar: Option<ProgressBar>,
    /// What one message adds to the bar: its bytes, or 1 where messages are empty.
    unit: u64,
}

impl Progress {
    /// A bar for `plan` on stderr, if that is a terminal.
    pub fn on_terminal(plan: &Plan) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::hidden();
        }
        let unit = plan.size.max(1);
        let bar = match plan.total_iterations() {
            Some(total) => ProgressBar::new(total * unit),
            None => ProgressBar::no_length(),
        };
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.set_style(style(plan));
        Self { bar: Some(bar), unit }
    }

    /// No bar.
    pub const fn hidden() -> Self {
        Self { bar: None, unit: 1 }
    }

    /// Shows that `iterations` messages are done, over all queue pairs. Meant for every 50 ms or so.
    pub fn update(&self, iterations: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(iterations.saturating_mul(self.unit));
        }
    }

    /// Takes the bar off the terminal.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn style(plan: &Plan) -> ProgressStyle {
    let template = match (plan.total_iterations(), plan.size) {
        (Some(_), 0) => " {wide_bar} {pos}/{len} messages, {per_sec}, {eta} left",
        (Some(_), _) => " {wide_bar} {binary_bytes}/{binary_total_bytes}, {binary_bytes_per_sec}, {eta} left",
        (None, 0) => " {spinner} {pos} messages, {per_sec}, {elapsed} passed",
        (None, _) => " {spinner} {binary_bytes}, {binary_bytes_per_sec}, {elapsed} passed",
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_bar_takes_any_progress() {
        let progress = Progress::hidden();
        progress.update(u64::MAX);
        progress.finish();
    }

    #[test]
    fn bar_counts_bytes() {
        let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::hidden());
        let progress = Progress { bar: Some(bar), unit: 100 };
        progress.update(3);
        assert_eq!(progress.bar.as_ref().map(ProgressBar::position), Some(300));
    }
}
