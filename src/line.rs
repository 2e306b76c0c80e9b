//! A waiting line: first in, first out, and anyone in it may leave early.

use std::collections::VecDeque;

/// Items in the order of their sequence numbers.
///
/// An item that leaves from the middle leaves an empty place behind, so that the numbers stay
/// sorted and a place is found by binary search. The front place is never empty, and empty
/// places never outnumber the items by more than one half, so every operation is amortised
/// O(log n) and memory follows the number of items.
#[derive(Debug)]
pub(crate) struct Line<T> {
    places: VecDeque<(u64, Option<T>)>,
    len: usize,
}

impl<T> Line<T> {
    pub(crate) fn new() -> Self {
        Line { places: VecDeque::new(), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Joins the end of the line. `seq` must be above every number that is in the line.
    pub(crate) fn push(&mut self, seq: u64, item: T) {
        debug_assert!(self.places.back().is_none_or(|(last, _)| *last < seq));
        self.places.push_back((seq, Some(item)));
        self.len += 1;
    }

    /// Joins the line where its number belongs: mostly at the end, or near it.
    pub(crate) fn insert(&mut self, seq: u64, item: T) {
        if self.places.back().is_none_or(|(last, _)| *last < seq) {
            return self.push(seq, item);
        }
        let at = self.places.partition_point(|(other, _)| *other < seq);
        self.places.insert(at, (seq, Some(item)));
        self.len += 1;
    }

    /// The first of those behind this number.
    pub(crate) fn behind(&self, seq: u64) -> Option<(u64, &T)> {
        let at = self.places.partition_point(|(other, _)| *other <= seq);
        self.places.range(at..).find_map(|(seq, item)| Some((*seq, item.as_ref()?)))
    }

    pub(crate) fn front(&self) -> Option<(u64, &T)> {
        let (seq, item) = self.places.front()?;
        Some((*seq, item.as_ref().expect("the front place is never empty")))
    }

    /// Those who joined another line, all after everybody in this one, join this one.
    pub(crate) fn append(&mut self, other: &mut Line<T>) {
        if self.places.is_empty() {
            // The rule in a long run, and the buffers trade places instead of their contents.
            std::mem::swap(self, other);
        } else {
            self.len += std::mem::take(&mut other.len);
            self.places.append(&mut other.places);
        }
    }

    /// The number of the last one in the line, unless it has left.
    pub(crate) fn last_seq(&self) -> Option<u64> {
        self.places.back().filter(|(_, item)| item.is_some()).map(|(seq, _)| *seq)
    }

    /// The one that joined last of those who are in the line.
    pub(crate) fn last(&self) -> Option<(u64, &T)> {
        self.places.iter().rev().find_map(|(seq, item)| Some((*seq, item.as_ref()?)))
    }

    pub(crate) fn get(&self, seq: u64) -> Option<&T> {
        let at = self.places.binary_search_by_key(&seq, |(seq, _)| *seq).ok()?;
        self.places[at].1.as_ref()
    }

    pub(crate) fn get_mut(&mut self, seq: u64) -> Option<&mut T> {
        let at = self.places.binary_search_by_key(&seq, |(seq, _)| *seq).ok()?;
        self.places[at].1.as_mut()
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(u64, T)> {
        let (seq, item) = self.places.pop_front()?;
        self.len -= 1;
        self.drop_empty_front();
        Some((seq, item.expect("the front place is never empty")))
    }

    /// The items with their numbers, in order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u64, &T)> {
        self.places.iter().filter_map(|(seq, item)| Some((*seq, item.as_ref()?)))
    }

    pub(crate) fn contains(&self, seq: u64) -> bool {
        self.get(seq).is_some()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(|(_, item)| item.as_ref())
    }

    /// Leaves the line from wherever it stands.
    #[inline]
    pub(crate) fn remove(&mut self, seq: u64) -> Option<T> {
        if self.places.front().is_some_and(|(first, _)| *first == seq) {
            return self.pop().map(|(_, item)| item);
        }
        self.remove_within(seq)
    }

    fn remove_within(&mut self, seq: u64) -> Option<T> {
        let at = self.places.binary_search_by_key(&seq, |(seq, _)| *seq).ok()?;
        let item = self.places[at].1.take()?;
        self.len -= 1;
        self.drop_empty_front();
        if self.places.len() > 16 && self.places.len() / 2 > self.len {
            self.places.retain(|(_, item)| item.is_some());
        }
        Some(item)
    }

    /// Takes out every item for which `leaves` holds, in order.
    pub(crate) fn remove_where(&mut self, mut leaves: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut gone = Vec::new();
        for (_, place) in &mut self.places {
            if place.as_ref().is_some_and(&mut leaves) {
                gone.extend(place.take());
            }
        }
        self.len -= gone.len();
        self.places.retain(|(_, item)| item.is_some());
        gone
    }

    fn drop_empty_front(&mut self) {
        // Without empty places, which is the rule, there is nothing to look for.
        while self.places.len() > self.len && self.places[0].1.is_none() {
            self.places.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Line;

    #[test]
    fn a_line_keeps_order_and_memory_when_items_leave_from_anywhere() {
        let mut line = Line::new();
        for seq in 0..1000 {
            line.push(seq, seq);
        }
        for seq in (0..1000).filter(|seq| seq % 10 != 3) {
            assert_eq!(line.remove(seq), Some(seq));
            assert_eq!(line.remove(seq), None);
        }
        assert_eq!(line.len(), 100);
        assert!(line.places.len() <= 200, "{} places for 100 items", line.places.len());
        assert_eq!(line.remove_where(|seq| *seq < 20), [3, 13]);
        assert_eq!(line.front(), Some((23, &23)));
        let left: Vec<u64> = std::iter::from_fn(|| line.pop()).map(|(seq, _)| seq).collect();
        assert_eq!(left, (23..1000).step_by(10).collect::<Vec<u64>>());
        assert!(line.is_empty());
    }
}
