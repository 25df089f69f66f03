//! Depth-first search through the states of a world.

use std::collections::{HashMap, HashSet};

use crate::checks::{check, check_end};
use crate::plan::Plan;
use crate::world::{Travel, World};

/// Events after which a schedule is taken for endless: far more than any has.
const DEPTH_MAX: usize = 1000;
/// Events of a failed schedule that are printed.
const EVENTS_TOLD: usize = 60;
/// Stack of the searching thread; a state lies on it for each event of a schedule.
const STACK: usize = 256 << 20;

/// What a search saw.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Tally {
    /// Different states with all fates decided.
    pub(crate) states: u64,
    /// Events tried.
    pub(crate) events: u64,
    /// Different ends.
    pub(crate) ends: u64,
    /// Events of the longest schedule.
    pub(crate) depth: usize,
}

/// Changes a world behind the endpoints' backs after each event, to prove that the checkers see it.
pub(crate) type Meddle = fn(&mut World);

struct Search<'a> {
    plan: &'a Plan,
    meddle: Meddle,
    /// Most faults left with which a state was visited: fewer can do nothing that was not tried.
    visited: HashMap<u64, u8>,
    path: HashSet<(u64, u8)>,
    story: Vec<String>,
    tally: Tally,
}

/// Visits every state of a world.
///
/// # Errors
/// What does not hold, and the events that lead there.
pub(crate) fn search(plan: &Plan, meddle: Meddle) -> Result<Tally, String> {
    let plan = plan.clone();
    let run = move || {
        let mut search = Search {
            plan: &plan,
            meddle,
            visited: HashMap::new(),
            path: HashSet::new(),
            story: Vec::new(),
            tally: Tally::default(),
        };
        let outcome = search.visit(World::new(&plan));
        outcome.map(|()| search.tally).map_err(|error| {
            let story = &search.story[search.story.len().saturating_sub(EVENTS_TOLD)..];
            format!("{error}\nafter {} events, the last of them {story:#?}", search.story.len())
        })
    };
    std::thread::Builder::new().stack_size(STACK).spawn(run).expect("a thread").join().expect("no panic")
}

impl Search<'_> {
    fn visit(&mut self, mut world: World) -> Result<(), String> {
        (self.meddle)(&mut world);
        check(&mut world, self.plan)?;
        let hash = world.hash();
        let here = (hash, world.faults);
        if self.path.contains(&here) {
            return Err("runs in circles".to_owned());
        }
        let before = self.visited.get(&hash).copied();
        if before.is_some_and(|faults| faults >= world.faults) {
            return Ok(());
        }
        self.visited.insert(hash, world.faults);
        self.tally.states += u64::from(before.is_none() && world.fresh().is_none());
        self.tally.depth = self.tally.depth.max(self.story.len());
        if self.story.len() > DEPTH_MAX {
            return Err("does not end".to_owned());
        }
        self.path.insert(here);
        match world.fresh() {
            Some(index) => self.decide(world, index)?,
            None => self.go_on(world)?,
        }
        self.path.remove(&here);
        Ok(())
    }

    /// Every fate of a frame that was just sent.
    fn decide(&mut self, mut world: World, index: usize) -> Result<(), String> {
        for &fault in world.faults_of(index) {
            let mut next = world.clone();
            next.apply_fault(index, fault);
            self.step(|| format!("{fault:?} {:?}", world.flights[index].kind()), next)?;
        }
        world.flights[index].travel = Travel::Soon;
        self.visit(world)
    }

    /// Every event that may come next.
    fn go_on(&mut self, world: World) -> Result<(), String> {
        let mut ends = true;
        for index in world.deliverable() {
            let mut next = world.clone();
            next.deliver(index);
            let flight = &world.flights[index];
            self.step(|| format!("to {:?}: {:?} {:?}", flight.to, flight.travel, flight.kind()), next)?;
            ends = false;
        }
        if !world.to_post.is_empty() {
            let mut next = world.clone();
            next.post_receive(self.plan);
            self.step(|| "post a receive".to_owned(), next)?;
            ends = false;
        }
        if let Some(at) = world.next_tick() {
            let mut next = world.clone();
            next.tick(at);
            self.step(|| format!("time {} ns", at.ns()), next)?;
            ends = false;
        }
        if ends {
            self.tally.ends += 1;
            check_end(&world, self.plan)?;
        }
        Ok(())
    }

    fn step(&mut self, what: impl Fn() -> String, next: World) -> Result<(), String> {
        self.tally.events += 1;
        // The story is told only when it is needed: formatting every event would take most of the time.
        self.story.push(String::new());
        let outcome = self.visit(next);
        if outcome.is_err() {
            let last = self.story.len() - 1;
            let depth = self.story.iter().rposition(|line| line.is_empty()).unwrap_or(last);
            self.story[depth] = what();
        } else {
            self.story.pop();
        }
        outcome
    }
}
