//! The bounded pool of packet maps: exact tracking of messages that were restarted.

/// Index of a map in its pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MapId(pub(crate) u32);

/// Maps of one endpoint. Memory is taken when a message is restarted and not before.
#[derive(Clone, Hash, Debug)]
pub(crate) struct MapPool {
    maps: Vec<Map>,
    free: Vec<u32>,
    words_left: usize,
}

#[derive(Clone, Hash, Debug)]
struct Map {
    words: Vec<u64>,
    seen: u32,
}

/// What [`MapPool::insert`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Inserted {
    /// How many different packets the map holds now.
    pub(crate) seen: u32,
}

impl MapPool {
    pub(crate) fn new(words_max: usize) -> Self {
        Self { maps: Vec::new(), free: Vec::new(), words_left: words_max }
    }

    /// An empty map for packets 0 … `packets` − 1, or `None` when the pool is used up.
    #[cold]
    pub(crate) fn take(&mut self, packets: u32) -> Option<MapId> {
        let words = (packets as usize).div_ceil(64);
        self.words_left = self.words_left.checked_sub(words)?;
        let map = Map { words: vec![0; words], seen: 0 };
        let id = match self.free.pop() {
            Some(id) => {
                self.maps[id as usize] = map;
                id
            }
            None => {
                self.maps.push(map);
                u32::try_from(self.maps.len() - 1).expect("bounded by words_max")
            }
        };
        Some(MapId(id))
    }

    pub(crate) fn contains(&self, id: MapId, packet: u32) -> bool {
        let word = self.maps[id.0 as usize].words.get(packet as usize / 64);
        word.is_some_and(|word| word >> (packet % 64) & 1 == 1)
    }

    /// Notes a packet. `None` if it was there already or lies outside the map.
    pub(crate) fn insert(&mut self, id: MapId, packet: u32) -> Option<Inserted> {
        let map = &mut self.maps[id.0 as usize];
        let word = map.words.get_mut(packet as usize / 64)?;
        let bit = 1 << (packet % 64);
        if *word & bit != 0 {
            return None;
        }
        *word |= bit;
        map.seen += 1;
        Some(Inserted { seen: map.seen })
    }

    #[cold]
    pub(crate) fn give_back(&mut self, id: MapId) {
        let words = std::mem::take(&mut self.maps[id.0 as usize].words);
        self.words_left += words.len();
        self.free.push(id.0);
    }

    /// Words that can still be taken.
    pub(crate) fn words_left(&self) -> usize {
        self.words_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_is_bounded_and_gives_room_back() {
        let mut pool = MapPool::new(4);
        let first = pool.take(129).unwrap();
        assert_eq!(pool.words_left(), 1);
        assert_eq!(pool.take(65), None);
        assert_eq!(pool.insert(first, 128), Some(Inserted { seen: 1 }));
        assert_eq!(pool.insert(first, 128), None);
        assert_eq!(pool.insert(first, 192), None, "outside");
        assert!(pool.contains(first, 128) && !pool.contains(first, 0));
        pool.give_back(first);
        assert_eq!(pool.words_left(), 4);
        let again = pool.take(256).unwrap();
        assert!(!pool.contains(again, 128), "a map starts empty");
    }
}
