//! What was found out about a limit.

use std::fmt;

/// A limit of the machine, as far as it could be found out.
///
/// There are three answers and not two: a limit that could not be read may well be there, so it
/// is never taken for none.
///
/// # Examples
///
/// ```
/// use admit::Fact;
///
/// let group = Fact::Limited { limit: 512, at: String::from("/sys/fs/cgroup/a/memory.max") };
/// let parent = Fact::Limited { limit: 384, at: String::from("/sys/fs/cgroup/memory.max") };
/// let least = Fact::least([group.clone(), Fact::Unlimited, parent.clone()]);
/// assert_eq!(least, parent);
///
/// let hidden = Fact::Unread { why: String::from("/sys/fs/cgroup: permission denied") };
/// assert_eq!(Fact::least([group, hidden.clone()]), hidden);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fact<T> {
    /// There is a limit.
    Limited {
        /// How much, in the unit of the field that holds the fact.
        limit: T,
        /// The file or the call that said so.
        at: String,
    },
    /// There is certainly none.
    Unlimited,
    /// It could not be found out.
    Unread {
        /// What was tried, and why it failed.
        why: String,
    },
}

impl<T: Copy + PartialOrd> Fact<T> {
    /// The limit, if there is one.
    pub fn limit(&self) -> Option<T> {
        match self {
            Fact::Limited { limit, .. } => Some(*limit),
            Fact::Unlimited | Fact::Unread { .. } => None,
        }
    }

    /// The least of several limits that all hold. If one could not be read, so could not the
    /// least: it may be lower than all that were.
    pub fn least(facts: impl IntoIterator<Item = Fact<T>>) -> Fact<T> {
        let mut least = Fact::Unlimited;
        for fact in facts {
            least = match (least, fact) {
                (unread @ Fact::Unread { .. }, _) | (_, unread @ Fact::Unread { .. }) => unread,
                (least, Fact::Unlimited) => least,
                (Fact::Limited { limit, at }, Fact::Limited { limit: other, .. })
                    if limit <= other =>
                {
                    Fact::Limited { limit, at }
                }
                (_, fact) => fact,
            };
        }
        least
    }
}

impl<T> Fact<T> {
    /// What a reader found, or why it could not.
    #[cfg(any(target_os = "linux", target_os = "android", windows))]
    pub(crate) fn or_unread(read: Result<Fact<T>, String>) -> Fact<T> {
        read.unwrap_or_else(|why| Fact::Unread { why })
    }

    /// The same fact with its limit in another form.
    pub(crate) fn map<U>(self, form: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Fact::Limited { limit, at } => Fact::Limited { limit: form(limit), at },
            Fact::Unlimited => Fact::Unlimited,
            Fact::Unread { why } => Fact::Unread { why },
        }
    }
}

impl<T: fmt::Display> fmt::Display for Fact<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fact::Limited { limit, at } => write!(f, "{limit} ({at})"),
            Fact::Unlimited => f.write_str("unlimited"),
            Fact::Unread { why } => write!(f, "could not be read ({why})"),
        }
    }
}
