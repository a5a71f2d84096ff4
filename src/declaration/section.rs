//! One table of a text, read key by key. Each key that is asked for is thereby a known one, so the list of
//! known keys is what the code reads and cannot drift from it; whatever else the table holds is a fault.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::time::Duration;

use toml::de::DeTable;

use super::document::NOTHING_MEANT;
use super::{Document, Item, Severity};

/// A table that is being read. [`Section::finish`] reports the keys that nobody asked for.
#[must_use = "a section that is not finished takes unknown keys in silence"]
pub struct Section<'d> {
    document: &'d Document<'d>,
    path: String,
    at: usize,
    table: &'d DeTable<'d>,
    /// Keys with, for one that is known but out of place here, the reason.
    known: RefCell<BTreeMap<&'static str, Option<String>>>,
}

impl<'d> Section<'d> {
    pub(super) fn new(document: &'d Document<'d>, path: String, at: usize, table: &'d DeTable<'d>) -> Self {
        Self {
            document,
            path,
            at,
            table,
            known: RefCell::default(),
        }
    }

    /// The key's path from the root: `tools.refund`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value of a key, if it stands there.
    pub fn get(&self, key: &'static str) -> Option<Item<'d>> {
        self.known.borrow_mut().insert(key, None);
        let (written, value) = self.table.get_key_value(key)?;
        Some(Item::new(
            self.document,
            joined(&self.path, key),
            written.span().start,
            value,
        ))
    }

    /// The value of a key that has to stand there; that it does not is an error.
    pub fn require(&self, key: &'static str) -> Option<Item<'d>> {
        let found = self.get(key);
        if found.is_none() {
            self.error_at_key(key, format!("{} needs the key `{key}`", self.shown()));
        }
        found
    }

    /// Every key of a table whose keys are names that the author chooses, in the order of the names.
    pub fn entries(&self) -> impl Iterator<Item = (&'d str, Item<'d>)> {
        self.table.iter().map(|(key, value)| {
            let name: &'d str = key.get_ref();
            (
                name,
                Item::new(self.document, joined(&self.path, name), key.span().start, value),
            )
        })
    }

    /// Declares keys that exist, but not here: the reason is told instead of a suggestion.
    pub fn out_of_place(&self, keys: &[&'static str], reason: &str) {
        let mut known = self.known.borrow_mut();
        for key in keys {
            known.entry(key).or_insert_with(|| Some(reason.to_owned()));
        }
    }

    /// Declares keys that may be right, while it is unknown what this table should hold. Nothing is said of them.
    pub fn tolerate(&self, keys: &[&'static str]) {
        self.known
            .borrow_mut()
            .extend(keys.iter().map(|key| (*key, None)));
    }

    /// A text, if the key stands there and is one.
    pub fn text(&self, key: &'static str) -> Option<&'d str> {
        self.get(key)?.text()
    }

    /// A truth value, or the default.
    pub fn flag(&self, key: &'static str, default: Flag) -> bool {
        self.get(key)
            .and_then(|item| item.flag())
            .unwrap_or(default == Flag::Set)
    }

    /// A whole number in a range, or the default.
    pub fn number(&self, key: &'static str, range: RangeInclusive<u64>, default: u64) -> u64 {
        self.get(key)
            .and_then(|item| item.number(range))
            .unwrap_or(default)
    }

    /// A duration in a range, or the default.
    pub fn duration(
        &self,
        key: &'static str,
        range: RangeInclusive<Duration>,
        default: Duration,
    ) -> Duration {
        self.get(key)
            .and_then(|item| item.duration(range))
            .unwrap_or(default)
    }

    /// A list of names, each at most once; empty where the key does not stand there.
    pub fn names(&self, key: &'static str) -> Vec<(&'d str, Item<'d>)> {
        let (mut names, mut seen) = (Vec::new(), BTreeSet::new());
        for item in self.get(key).map(|item| item.list()).unwrap_or_default() {
            let Some(name) = item.name() else { continue };
            if seen.insert(name) {
                names.push((name, item));
            } else {
                item.error(format!("`{name}` stands twice in {}.{key}", self.path));
            }
        }
        names
    }

    /// An error about this table as a whole, placed where it begins.
    pub fn error(&self, message: impl Into<String>) {
        self.document.report(
            Severity::Error,
            &self.path,
            self.at,
            message.into(),
            NOTHING_MEANT,
        );
    }

    /// A warning about a key that may be absent, placed where the table begins.
    pub fn warn_at_key(&self, key: &'static str, message: impl Into<String>) {
        self.document.report(
            Severity::Warning,
            &joined(&self.path, key),
            self.at,
            message.into(),
            NOTHING_MEANT,
        );
    }

    /// An error about a key that is absent, placed where the table begins.
    pub fn error_at_key(&self, key: &'static str, message: impl Into<String>) {
        self.document.report(
            Severity::Error,
            &joined(&self.path, key),
            self.at,
            message.into(),
            NOTHING_MEANT,
        );
    }

    /// Ends the reading: each key that was not asked for is an error that names the nearest one that was.
    pub fn finish(self) {
        let known = self.known.borrow();
        let shown = self.shown();
        for key in self.table.keys() {
            let (name, at) = (key.get_ref().as_ref(), key.span().start);
            let path = joined(&self.path, name);
            match known.get(name) {
                Some(None) => {}
                Some(Some(reason)) => {
                    let message = format!("the key `{name}` is out of place in {shown}: {reason}");
                    self.document
                        .report(Severity::Error, &path, at, message, NOTHING_MEANT);
                }
                None => {
                    let usable = known
                        .iter()
                        .filter(|(_, reason)| reason.is_none())
                        .map(|(key, _)| *key);
                    let message = format!("unknown key `{name}` in {shown}");
                    self.document
                        .report(Severity::Error, &path, at, message, (name, usable));
                }
            }
        }
    }

    fn shown(&self) -> &str {
        if self.path.is_empty() {
            "the text"
        } else {
            &self.path
        }
    }
}

/// What a truth value is when it is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// `true`
    Set,
    /// `false`
    Unset,
}

/// The path of a key; a name that TOML would need to quote is quoted.
pub(super) fn joined(path: &str, key: &str) -> String {
    let bare = !key.is_empty()
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    let key = if bare { key.to_owned() } else { format!("{key:?}") };
    if path.is_empty() {
        key
    } else {
        format!("{path}.{key}")
    }
}
