//! The directory as a file: people, groups and service accounts, to be put into the store in one go.
//!
//! It is held to the same standard as a catalogue: an unknown key, group, grant or scope is an error with its
//! line and the nearest known name, since a grant that is dropped in silence is found out at the worst moment.
//! It says nothing of what is already in the store, and holds no credential.

use std::collections::{BTreeMap, BTreeSet};

use crate::declaration::{Document, Flag, Item, Problems, Section, Severity};
use crate::model::{Actor, Scope, UserGrant};

/// Everything that one file declares, each kind in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectoryFile {
    /// `[[users]]`
    pub users: Vec<UserEntry>,
    /// `[[groups]]`
    pub groups: Vec<GroupEntry>,
    /// `[[service_accounts]]`
    pub service_accounts: Vec<ServiceAccountEntry>,
}

/// A person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserEntry {
    /// The id, without the kind.
    pub id: String,
    /// For people; the id unless declared.
    pub name: String,
    /// Whether the person is an administrator.
    pub admin: bool,
    /// Whether the person may act; nothing leaves an existing entry as it is.
    pub enabled: Option<bool>,
    /// Ids of groups, all of this file.
    pub groups: Vec<String>,
}

/// A group of people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupEntry {
    /// The id, by which catalogues name it.
    pub id: String,
    /// What its members hold.
    pub grants: BTreeSet<UserGrant>,
}

/// An automation's account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccountEntry {
    /// The id, without the kind.
    pub id: String,
    /// For people; the id unless declared.
    pub name: String,
    /// Whether the account may act; nothing leaves an existing entry as it is.
    pub enabled: Option<bool>,
    /// What it may do.
    pub scopes: BTreeSet<Scope>,
}

impl DirectoryFile {
    /// Reads a file's text.
    ///
    /// # Errors
    ///
    /// When the text is no TOML, an id is invalid or stands twice, a key, grant or scope is unknown, or a user is in
    /// a group that the file does not declare: all problems that were found.
    pub fn parse(text: &str) -> Result<Self, Problems> {
        let document = Document::parse(text)?;
        let directory = read(document.root());
        let problems = document.into_problems();
        if problems.has_errors() {
            Err(problems)
        } else {
            Ok(directory)
        }
    }
}

fn read(root: Section<'_>) -> DirectoryFile {
    let groups = each(&root, "groups", |id, section| GroupEntry {
        id,
        grants: words(
            section,
            "grants",
            &UserGrant::ALL.map(UserGrant::as_str),
            UserGrant::parse,
        ),
    });
    let declared: BTreeSet<&str> = groups.iter().map(|group| group.id.as_str()).collect();
    let users = each(&root, "users", |id, section| UserEntry {
        name: read_name(section, &id),
        admin: section.flag("admin", Flag::Unset),
        enabled: section.get("enabled").and_then(|item| item.flag()),
        groups: read_groups(section, &declared),
        id,
    });
    let service_accounts = each(&root, "service_accounts", |id, section| ServiceAccountEntry {
        name: read_name(section, &id),
        enabled: section.get("enabled").and_then(|item| item.flag()),
        scopes: words(section, "scopes", &Scope::ALL.map(Scope::as_str), Scope::parse),
        id,
    });
    root.finish();
    DirectoryFile {
        users,
        groups,
        service_accounts,
    }
}

/// Reads each table of a list. One without a usable id has reported why and is left out.
fn each<T>(root: &Section<'_>, key: &'static str, read: impl Fn(String, &Section<'_>) -> T) -> Vec<T> {
    let mut entries = Vec::new();
    let mut seen = BTreeMap::new();
    for item in root.get(key).map(|item| item.list()).unwrap_or_default() {
        let Some(section) = item.table() else { continue };
        let id = section.require("id").and_then(|item| read_id(&item, &mut seen));
        // Read without an id too, for the other faults in it.
        let entry = read(id.unwrap_or_default().to_owned(), &section);
        section.finish();
        entries.extend(id.map(|_| entry));
    }
    entries
}

/// An id that nothing before it in the list has.
fn read_id<'d>(item: &Item<'d>, seen: &mut BTreeMap<&'d str, String>) -> Option<&'d str> {
    let id = item.text()?;
    if !Actor::is_valid_id(id) {
        item.error(format!(
            "{} must be 1 to 128 letters, digits or . _ - @ +",
            item.path()
        ));
        return None;
    }
    if let Some(first) = seen.get(id) {
        item.error(format!("{} is `{id}`, which {first} is already", item.path()));
        return None;
    }
    seen.insert(id, item.path().to_owned());
    Some(id)
}

fn read_name(section: &Section<'_>, id: &str) -> String {
    section
        .get("name")
        .and_then(|item| item.name())
        .unwrap_or(id)
        .to_owned()
}

fn read_groups(section: &Section<'_>, declared: &BTreeSet<&str>) -> Vec<String> {
    let known = |(name, item): &(&str, Item<'_>)| {
        let known = declared.contains(name);
        if !known {
            let message = format!("{} names the group `{name}`, which is not declared", item.path());
            item.misspelt(Severity::Error, message, name, declared.iter().copied());
        }
        known
    };
    section
        .names("groups")
        .into_iter()
        .filter(known)
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// A list of words of a fixed set.
fn words<T: Ord>(
    section: &Section<'_>,
    key: &'static str,
    all: &[&'static str],
    parse: impl Fn(&str) -> Option<T>,
) -> BTreeSet<T> {
    let names = section.names(key).into_iter();
    names
        .filter_map(|(_, item)| item.one_of(all).and_then(&parse))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = r#"
[[users]]
id = "olga"
name = "Olga O."
groups = ["support", "finance"]

[[users]]
id = "root@example.org"
admin = true
enabled = false

[[groups]]
id = "support"

[[groups]]
id = "finance"
grants = ["agent_approve"]

[[service_accounts]]
id = "sweeper"
enabled = true
scopes = ["agent:approve", "configuration:use"]
"#;

    fn refused(line: &str, other: &str) -> String {
        assert_eq!(FULL.matches(line).count(), 1, "{line}");
        DirectoryFile::parse(&FULL.replace(line, other))
            .expect_err(other)
            .to_string()
    }

    #[test]
    fn everything_that_is_declared_is_read() {
        let directory = DirectoryFile::parse(FULL).unwrap();
        let [olga, root] = directory.users.as_slice() else {
            panic!("{:?}", directory.users)
        };
        assert_eq!(
            (olga.name.as_str(), olga.admin, olga.enabled),
            ("Olga O.", false, None)
        );
        assert_eq!(olga.groups, ["support", "finance"]);
        assert_eq!(
            (root.name.as_str(), root.admin, root.enabled),
            ("root@example.org", true, Some(false))
        );
        assert_eq!(
            directory.groups[1].grants,
            BTreeSet::from([UserGrant::AgentApprove])
        );
        let sweeper = &directory.service_accounts[0];
        assert_eq!(
            (sweeper.name.as_str(), sweeper.enabled, sweeper.scopes.len()),
            ("sweeper", Some(true), 2)
        );
        assert_eq!(DirectoryFile::parse("").unwrap(), DirectoryFile::default());
    }

    #[test]
    fn case_c8_a_misspelt_name_is_refused_and_the_nearest_known_one_named() {
        for (line, other, expected) in [
            (
                "groups = [\"support\", \"finance\"]",
                "groups = [\"support\", \"finanse\"]",
                "error: users[0].groups[1] names the group `finanse`, which is not declared, line 5, column 22: \
                 did you mean `finance`?",
            ),
            (
                "grants = [\"agent_approve\"]",
                "grants = [\"agent:approve\"]",
                "error: groups[1].grants[0] must be one of `agent_approve`, line 17, column 11: \
                 did you mean `agent_approve`?",
            ),
            (
                "scopes = [\"agent:approve\", \"configuration:use\"]",
                "scope = []",
                "error: unknown key `scope` in service_accounts[0], line 22, column 1: did you mean `scopes`?",
            ),
            (
                "[[service_accounts]]",
                "[[service_account]]",
                "error: unknown key `service_account` in the text, line 19, column 3: \
                 did you mean `service_accounts`?",
            ),
        ] {
            assert_eq!(refused(line, other), expected);
        }
    }

    #[test]
    fn an_id_is_valid_and_stands_once() {
        assert_eq!(
            refused("id = \"root@example.org\"", "id = \"olga\""),
            "error: users[1].id is `olga`, which users[0].id is already, line 8, column 1"
        );
        assert_eq!(
            refused("id = \"sweeper\"", "id = \"swee per\""),
            "error: service_accounts[0].id must be 1 to 128 letters, digits or . _ - @ +, line 20, column 1"
        );
        assert!(
            refused("id = \"sweeper\"", "")
                .starts_with("error: service_accounts[0] needs the key `id`, line 19")
        );
        // A user and a service account may share an id: the kind tells them apart.
        assert!(DirectoryFile::parse(&FULL.replace("\"sweeper\"", "\"olga\"")).is_ok());
    }
}
