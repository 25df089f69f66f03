//! Turns of running and standing still, by SIGSTOP and SIGCONT: where no group can be made.
//!
//! Coarse, and not hidden from the programs' parents: a shell notices that its child was stopped. Children of COMMAND
//! that begin a process group of their own are missed. A thread of its own
//! keeps the turns, so that they go on evenly whatever the controller does.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use dcp_core::{Level, TrafficClass};
use rustix::process::Signal;

use super::{Actuator, index};
use crate::clock::now_ns;
use crate::root::Root;
use crate::target::Target;
use crate::undo::Undo;

/// Length of a turn, run and stop together: short beside what a person notices, long beside the tick of the scheduler.
const TURN_NS: u64 = 20_000_000;

#[derive(Debug)]
enum Order {
    Adopt(TrafficClass, Target),
    Apply(TrafficClass, Level),
}

/// Turns of both classes.
#[derive(Debug)]
pub struct Duty {
    /// `None` when lifted.
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
    root: Root,
    targets: Vec<Target>,
}

impl Duty {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gave none; the reason.
    pub fn open(root: &Root) -> Result<Self, String> {
        let (sender, orders) = channel();
        let mut turns = Turns { root: root.clone(), targets: Default::default(), levels: [Level::FREE; 2] };
        let thread = std::thread::Builder::new()
            .name("rhcc-duty".into())
            .spawn(move || turns.run(&orders))
            .map_err(|error| error.to_string())?;
        let (orders, thread) = (Some(sender), Some(thread));
        Ok(Self { orders, thread, root: root.clone(), targets: Vec::new() })
    }

    fn order(&self, order: Order) -> io::Result<()> {
        let sent = self.orders.as_ref().is_some_and(|orders| orders.send(order).is_ok());
        if sent { Ok(()) } else { Err(io::Error::other("the thread that stops programs has ended")) }
    }

    /// Ends the thread, which lets everything go on.
    fn end(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Actuator for Duty {
    fn name(&self) -> String {
        "sigstop: turns of running and standing still".into()
    }

    fn period_ns(&self) -> u64 {
        2 * TURN_NS
    }

    fn entrances(&self, _class: TrafficClass) -> Vec<PathBuf> {
        Vec::new()
    }

    fn adopt(&mut self, class: TrafficClass, target: &Target) -> io::Result<()> {
        // Says whether this user may stop it, and does nothing to what runs.
        target.signal(&self.root, Signal::CONT)?;
        self.targets.push(target.clone());
        self.order(Order::Adopt(class, target.clone()))
    }

    fn apply(&mut self, class: TrafficClass, level: Level) -> io::Result<()> {
        self.order(Order::Apply(class, level))
    }

    fn undo(&self) -> Vec<Undo> {
        self.targets.iter().cloned().map(Undo::Continue).collect()
    }

    fn lift(&mut self, root: &Root) -> Vec<String> {
        self.end();
        crate::undo::run(root, &self.undo())
    }
}

impl Drop for Duty {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the thread knows.
struct Turns {
    root: Root,
    targets: [Vec<Target>; 2],
    levels: [Level; 2],
}

impl Turns {
    fn run(&mut self, orders: &Receiver<Order>) {
        loop {
            let goes_on = if self.levels == [Level::FREE; 2] {
                orders.recv().map(|order| self.take(order)).is_ok()
            } else {
                self.turn(orders)
            };
            if !goes_on {
                break;
            }
        }
        self.all(0, Signal::CONT);
        self.all(1, Signal::CONT);
    }

    /// One turn: all run; each class stops when its part is over; all go on. False: it is over for good.
    fn turn(&mut self, orders: &Receiver<Order>) -> bool {
        let start = now_ns();
        let mut stops: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for class in 0..2 {
            let percent = u64::from(self.levels[class].percent());
            if percent < 100 {
                stops.entry(start + TURN_NS * percent / 100).or_default().push(class);
            }
        }
        let mut goes_on = true;
        for (at_ns, classes) in stops {
            goes_on &= self.wait(orders, at_ns);
            if goes_on {
                classes.iter().for_each(|&class| self.all(class, Signal::STOP));
            }
        }
        goes_on = goes_on && self.wait(orders, start + TURN_NS);
        self.all(0, Signal::CONT);
        self.all(1, Signal::CONT);
        goes_on
    }

    /// Waits, and takes orders meanwhile; they count from the next turn on.
    fn wait(&mut self, orders: &Receiver<Order>, until_ns: u64) -> bool {
        loop {
            let left = Duration::from_nanos(until_ns.saturating_sub(now_ns()));
            match orders.recv_timeout(left) {
                Ok(order) => self.take(order),
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    fn take(&mut self, order: Order) {
        match order {
            Order::Adopt(class, target) => self.targets[index(class)].push(target),
            Order::Apply(class, level) => self.levels[index(class)] = level,
        }
    }

    /// What cannot be signalled has ended, or was never ours: the program noticed that when it adopted it.
    fn all(&self, class: usize, signal: Signal) {
        for target in &self.targets[class] {
            let _ = target.signal(&self.root, signal);
        }
    }
}
