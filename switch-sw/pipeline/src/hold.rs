//! Frames that a fault holds back, for a time or until others have passed.

use crate::fault::{FaultConfig, Wait};

/// Bounded, and searched from end to end: it is for tests.
#[derive(Debug)]
pub(crate) struct Hold<T> {
    /// In the order of arrival.
    held: Vec<Held<T>>,
    frames_max: usize,
    /// Frames that came by so far.
    passed: u64,
}

#[derive(Debug)]
struct Held<T> {
    due_ns: u64,
    /// Due when so many frames have come by, whatever the time.
    due_frame: u64,
    item: T,
}

impl<T> Hold<T> {
    pub(crate) fn new(config: &FaultConfig) -> Self {
        let mut hold = Self { held: Vec::new(), frames_max: 0, passed: 0 };
        hold.configure(config);
        hold
    }

    /// Changes the bound; takes the memory for it where frames can be held back.
    pub(crate) fn configure(&mut self, config: &FaultConfig) {
        self.frames_max = if config.can_hold() { config.held_frames_max as usize } else { 0 };
        self.held.reserve_exact(self.frames_max.saturating_sub(self.held.len()));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// A frame comes by.
    pub(crate) fn count_frame(&mut self) {
        self.passed += 1;
    }

    /// Holds an item back, or gives it back where too many are.
    pub(crate) fn put(&mut self, now_ns: u64, wait: Wait, item: T) -> Result<(), T> {
        if self.held.len() >= self.frames_max {
            return Err(item);
        }
        let (ns, due_frame) = match wait {
            Wait::Delay { ns } => (ns, u64::MAX),
            Wait::Reorder { frames, ns } => (ns, self.passed + u64::from(frames)),
        };
        self.held.push(Held { due_ns: now_ns.saturating_add(ns), due_frame, item });
        Ok(())
    }

    /// Takes an item that is due: the one whose time came first, then the one that came first.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<T> {
        let passed = self.passed;
        let due = self.held.iter().enumerate();
        let due = due.filter(|(_, held)| held.due_ns <= now_ns || held.due_frame <= passed);
        let (index, _) = due.min_by_key(|(_, held)| held.due_ns)?;
        Some(self.held.remove(index).item)
    }

    /// When the next item is due by time.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.held.iter().map(|held| held.due_ns).min()
    }

    /// Drops everything; how many there were.
    pub(crate) fn clear(&mut self) -> usize {
        let count = self.held.len();
        self.held.clear();
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Probability;

    fn hold(held_frames_max: u32) -> Hold<u32> {
        Hold::new(&FaultConfig { delay: Probability::ALWAYS, held_frames_max, ..FaultConfig::NONE })
    }

    fn due(hold: &mut Hold<u32>, now_ns: u64) -> Vec<u32> {
        std::iter::from_fn(|| hold.take_due(now_ns)).collect()
    }

    #[test]
    fn items_come_at_their_time_in_its_order() {
        let mut hold = hold(8);
        for (item, ns) in [(1, 30), (2, 10), (3, 10), (4, 50)] {
            hold.put(100, Wait::Delay { ns }, item).unwrap();
        }
        assert_eq!((due(&mut hold, 109), hold.next_ns()), (vec![], Some(110)));
        assert_eq!(due(&mut hold, 140), [2, 3, 1]);
        assert_eq!((hold.next_ns(), hold.clear(), hold.next_ns()), (Some(150), 1, None));
    }

    #[test]
    fn items_come_after_so_many_frames_or_when_no_more_come() {
        let mut hold = hold(8);
        hold.put(0, Wait::Reorder { frames: 2, ns: 100 }, 7).unwrap();
        hold.count_frame();
        assert_eq!(due(&mut hold, 1), []);
        hold.put(1, Wait::Reorder { frames: 2, ns: 100 }, 8).unwrap();
        hold.count_frame();
        assert_eq!(due(&mut hold, 2), [7]);
        assert_eq!(due(&mut hold, 100), []);
        assert_eq!(due(&mut hold, 101), [8]);
    }

    #[test]
    fn a_full_hold_gives_the_item_back() {
        let mut hold = hold(2);
        let put = |hold: &mut Hold<u32>, item| hold.put(0, Wait::Delay { ns: 5 }, item);
        assert_eq!([put(&mut hold, 1), put(&mut hold, 2), put(&mut hold, 3)], [Ok(()), Ok(()), Err(3)]);
        assert_eq!(due(&mut hold, 5), [1, 2]);
        assert_eq!(put(&mut hold, 4), Ok(()));
    }
}
