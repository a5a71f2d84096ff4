//! What a directory file makes of the directory, and how that differs from what it is. Pure.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::paint::{Paint, Style};
use crate::identity::DirectoryFile;
use crate::model::{Actor, Scope, UserGrant, visible};
use crate::store::{Account, Directory, Group, Person};

/// The directory that the file describes. Who does not say `enabled` is as now, or enabled if new.
pub(super) fn written(file: DirectoryFile, now: &Directory) -> Directory {
    let person = |id: &str| now.people.iter().find(|person| person.id == id);
    let account = |id: &str| now.accounts.iter().find(|account| account.id == id);
    Directory {
        people: file
            .users
            .into_iter()
            .map(|user| Person {
                enabled: user
                    .enabled
                    .or(person(&user.id).map(|person| person.enabled))
                    .unwrap_or(true),
                id: user.id,
                name: user.name,
                admin: user.admin,
                groups: user.groups.into_iter().collect(),
            })
            .collect(),
        groups: file
            .groups
            .into_iter()
            .map(|group| Group {
                id: group.id,
                grants: group.grants,
            })
            .collect(),
        accounts: file
            .service_accounts
            .into_iter()
            .map(|entry| Account {
                enabled: entry
                    .enabled
                    .or(account(&entry.id).map(|account| account.enabled))
                    .unwrap_or(true),
                id: entry.id,
                name: entry.name,
                scopes: entry.scopes,
            })
            .collect(),
    }
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// [`Change::ADDED`], [`Change::CHANGED`] or [`Change::REMOVED`].
    pub sign: &'static str,
    /// `user:ada`, `service:sweeper` or `group:ops`.
    pub what: String,
    /// The particulars: `admin no → yes, groups - → ops`.
    pub how: String,
}

impl Change {
    /// Only the file has it.
    pub(super) const ADDED: &'static str = "+";
    /// Both have it, and the file says something else.
    pub(super) const CHANGED: &'static str = "~";
    /// Only the directory has it.
    pub(super) const REMOVED: &'static str = "-";

    /// For people.
    pub(super) fn line(&self, paint: Paint) -> String {
        let style = match self.sign {
            Self::ADDED => Style::Green,
            Self::REMOVED => Style::Red,
            _ => Style::Yellow,
        };
        let line = format!(
            "{} {}  {}",
            paint.apply(style, self.sign),
            visible(&self.what),
            visible(&self.how)
        );
        line.trim_end().to_owned()
    }

    /// For machines.
    pub(super) fn form(&self) -> Value {
        let change = match self.sign {
            Self::ADDED => "added",
            Self::REMOVED => "removed",
            _ => "changed",
        };
        json!({ "change": change, "what": self.what, "how": self.how })
    }
}

/// What is different, in the order of the names.
pub(super) fn changes(now: &Directory, wanted: &Directory) -> Vec<Change> {
    let (now, wanted) = (flat(now), flat(wanted));
    let mut names: Vec<&String> = now.keys().chain(wanted.keys()).collect();
    names.sort_unstable();
    names.dedup();
    names
        .into_iter()
        .filter_map(|what| {
            let (sign, how) = match (now.get(what), wanted.get(what)) {
                (None, Some(new)) => (Change::ADDED, said(new)),
                (Some(old), None) => (Change::REMOVED, said(old)),
                (Some(old), Some(new)) if old != new => (Change::CHANGED, said_anew(old, new)),
                _ => return None,
            };
            Some(Change {
                sign,
                what: what.clone(),
                how,
            })
        })
        .collect()
}

/// The parts of one entry, by name, as text; what says nothing is empty.
type Parts = Vec<(&'static str, String)>;

fn flat(directory: &Directory) -> BTreeMap<String, Parts> {
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let joined = |words: Vec<&str>| words.join(" ");
    let people = directory.people.iter().map(|person| {
        let groups = joined(person.groups.iter().map(String::as_str).collect());
        let parts = vec![
            ("name", person.name.clone()),
            ("admin", yes(person.admin)),
            ("enabled", yes(person.enabled)),
            ("groups", groups),
        ];
        (Actor::User(person.id.clone()).to_string(), parts)
    });
    let accounts = directory.accounts.iter().map(|account| {
        let scopes = joined(account.scopes.iter().copied().map(Scope::as_str).collect());
        let parts = vec![
            ("name", account.name.clone()),
            ("enabled", yes(account.enabled)),
            ("scopes", scopes),
        ];
        (Actor::Service(account.id.clone()).to_string(), parts)
    });
    let groups = directory.groups.iter().map(|group| {
        let grants = joined(group.grants.iter().copied().map(UserGrant::as_str).collect());
        (format!("group:{}", group.id), vec![("grants", grants)])
    });
    people.chain(accounts).chain(groups).collect()
}

fn said(parts: &Parts) -> String {
    let words = parts.iter().filter(|(_, text)| !text.is_empty());
    words
        .map(|(name, text)| format!("{name} {text}"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn said_anew(old: &Parts, new: &Parts) -> String {
    let shown = |text: &str| {
        if text.is_empty() {
            "none".to_owned()
        } else {
            text.to_owned()
        }
    };
    let differing = old.iter().zip(new).filter(|(old, new)| old != new);
    differing
        .map(|((name, old), (_, new))| format!("{name} {} → {}", shown(old), shown(new)))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(text: &str, now: &Directory) -> Directory {
        written(DirectoryFile::parse(text).unwrap(), now)
    }

    const OLD: &str = r#"
        users = [{ id = "ada", admin = true }, { id = "gina", groups = ["ops"], enabled = false }]
        groups = [{ id = "ops" }]
        service_accounts = [{ id = "sweeper", scopes = ["agent:approve"] }]
    "#;

    #[test]
    fn a_file_says_everything_but_whether_one_who_is_there_is_enabled() {
        let old = directory(OLD, &Directory::default());
        assert!(old.people[0].enabled && !old.people[1].enabled && old.accounts[0].enabled);
        let again = directory(&OLD.replace(", enabled = false", ""), &old);
        assert_eq!(again, old);
        assert!(changes(&old, &again).is_empty());
    }

    #[test]
    fn each_difference_is_told() {
        let old = directory(OLD, &Directory::default());
        let new = r#"
            users = [{ id = "ada" }, { id = "olga", name = "Olga", groups = ["ops"] }]
            groups = [{ id = "ops", grants = ["agent_approve"] }]
            service_accounts = [{ id = "sweeper", scopes = ["agent:approve"] }]
        "#;
        let lines: Vec<String> = changes(&old, &directory(new, &old))
            .iter()
            .map(|change| change.line(Paint::PLAIN))
            .collect();
        assert_eq!(
            lines,
            [
                "~ group:ops  grants none → agent_approve",
                "~ user:ada  admin yes → no",
                "- user:gina  name gina, admin no, enabled no, groups ops",
                "+ user:olga  name Olga, admin no, enabled yes, groups ops",
            ]
        );
    }
}
