//! A progress bar on the terminal.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::console::Console;
use crate::outcome::Interval;
use crate::plan::Plan;
use crate::report::{self, Unit};
use crate::traffic::Done;

/// Shows how far a run is; does nothing unless stderr is a terminal.
pub struct Progress {
    bar: Option<ProgressBar>,
    /// Whether it counts bytes; messages where these are empty.
    in_bytes: bool,
    /// Where rows of intervals go.
    rows: Option<(Console, Unit)>,
}

impl Progress {
    /// A bar for `plan` on stderr, if that is a terminal.
    pub fn on_terminal(plan: &Plan) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::hidden();
        }
        let in_bytes = plan.size > 0;
        let mean = plan.load.size_dist.map_or(plan.size, |_| 0);
        let bar = match plan.total_iterations() {
            // Sizes that are drawn have no sum that is known.
            Some(_) if in_bytes && mean == 0 => ProgressBar::no_length(),
            Some(total) => ProgressBar::new(total * mean.max(1)),
            None => ProgressBar::no_length(),
        };
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.set_style(style(plan));
        Self { bar: Some(bar), in_bytes, rows: None }
    }

    /// No bar.
    pub const fn hidden() -> Self {
        Self { bar: None, in_bytes: false, rows: None }
    }

    /// Begins anew, for the next of several plans.
    pub fn begin(&mut self, plan: &Plan) {
        if self.bar.is_some() {
            self.finish();
            *self = Self { rows: self.rows, ..Self::on_terminal(plan) };
        }
    }

    /// The same, with rows of intervals.
    pub fn with_rows(self, console: Console, unit: Unit) -> Self {
        Self { rows: Some((console, unit)), ..self }
    }

    /// Shows how much is done, over all queue pairs. Meant for every 50 ms or so.
    pub(crate) fn update(&self, done: Done) {
        if let Some(bar) = &self.bar {
            bar.set_position(if self.in_bytes { done.bytes } else { done.messages });
        }
    }

    /// Shows a piece of the run.
    pub(crate) fn row(&self, interval: &Interval) {
        let Some((console, unit)) = self.rows else { return };
        // Where it cannot be written, the row at the end tells.
        let print = || drop(console.table(&report::interval_row(interval, unit)));
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
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
        progress.update(Done { messages: u64::MAX, bytes: u64::MAX });
        progress.finish();
    }

    #[test]
    fn bar_counts_bytes() {
        let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::hidden());
        let progress = Progress { bar: Some(bar), in_bytes: true, rows: None };
        progress.update(Done { messages: 3, bytes: 300 });
        assert_eq!(progress.bar.as_ref().map(ProgressBar::position), Some(300));
    }
}
