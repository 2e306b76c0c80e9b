//! How fast a lane's line moves, as far as anybody has looked.

use std::time::Duration;

use crate::sys::clock::Moment;

/// How long one looks at least: less says little.
const LEAST: Duration = Duration::from_millis(100);
/// From when on an earlier look is passed over for a later one.
const WINDOW: Duration = Duration::from_secs(1);
/// What was seen longer ago was another load.
const MEMORY: Duration = Duration::from_secs(10);

/// How many had left by then.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Moment,
    left: u64,
}

/// Kept by those who ask, so that jobs cost nothing.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// The look that is measured from, and the one that it will be measured from next.
    marks: Option<(Mark, Mark)>,
}

impl Pace {
    /// In what time how many have left, up to now: over the last second or two, if others asked then.
    pub(crate) fn look(&mut self, now: Moment, left: u64) -> Option<(Duration, u64)> {
        let mark = Mark { at: now, left };
        let known = self.marks.filter(|(_, last)| now.since(last.at) <= MEMORY);
        let Some((from, last)) = known else {
            self.marks = Some((mark, mark));
            return None;
        };
        if now.since(last.at) >= WINDOW {
            self.marks = Some((last, mark));
        }
        let time = now.since(from.at);
        (time >= LEAST).then(|| (time, left - from.left))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Pace;
    use crate::sys::clock::Moment;

    #[test]
    fn a_pace_is_that_of_the_last_seconds_and_forgotten_when_nobody_has_looked() {
        let mut pace = Pace::default();
        let millis = |millis: u64| Moment::at(millis * 1_000_000);
        let in_millis = |millis, left| Some((Duration::from_millis(millis), left));
        assert_eq!(pace.look(millis(0), 100), None);
        assert_eq!(pace.look(millis(50), 105), None, "too soon");
        assert_eq!(pace.look(millis(500), 150), in_millis(500, 50));
        assert_eq!(pace.look(millis(1000), 200), in_millis(1000, 100));
        // From now on it moves twice as fast.
        assert_eq!(pace.look(millis(2000), 400), in_millis(2000, 300));
        assert_eq!(pace.look(millis(3000), 600), in_millis(2000, 400));
        assert_eq!(pace.look(millis(20_000), 700), None, "another load");
        assert_eq!(pace.look(millis(20_500), 701), in_millis(500, 1));
    }
}
