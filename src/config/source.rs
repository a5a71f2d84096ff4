//! What is set where: the settings' file, and over it the variables. It finds what is unknown and what is of
//! the wrong kind; what the values mean together is for `build`.

use std::collections::BTreeMap;

use super::settings::{SETTINGS, TEST_VARIABLE_PREFIX, VARIABLE_OF_THE_FILE, VARIABLE_PREFIX};
use super::value::Value;
use crate::declaration::{Document, Item, Problem, Section, nearest};

/// What was given, by the setting's path, and what is wrong with it so far.
pub(super) struct Given {
    pub(super) values: BTreeMap<&'static str, Value>,
    /// The host's name, as far as the environment tells it.
    pub(super) host: Option<String>,
    pub(super) problems: Vec<Problem>,
}

/// Reads file and variables.
pub(super) fn read(text: &str, env: impl Iterator<Item = (String, String)>) -> Given {
    let mut given = Given {
        values: BTreeMap::new(),
        host: None,
        problems: Vec::new(),
    };
    read_file(&mut given, text);
    read_variables(&mut given, env);
    given
}

fn read_file(given: &mut Given, text: &str) {
    let problems = match Document::parse(text) {
        Ok(document) => {
            read_sections(given, &document);
            document.into_problems()
        }
        Err(problems) => problems,
    };
    // The line that a syntax error shows may hold a password.
    given.problems.extend(problems.into_iter().map(|problem| Problem {
        excerpt: None,
        ..problem
    }));
}

fn read_sections(given: &mut Given, document: &Document<'_>) {
    let root = document.root();
    let mut sections: BTreeMap<&'static str, Section<'_>> = BTreeMap::new();
    for row in &SETTINGS {
        let (name, key) = row.section_and_key();
        if !sections.contains_key(name)
            && let Some(section) = root.get(name).as_ref().and_then(Item::table)
        {
            sections.insert(name, section);
        }
        let item = sections.get(name).and_then(|section| section.get(key));
        if let Some(value) = item.and_then(|item| row.kind.read_item(&item)) {
            given.values.insert(row.path, value);
        }
    }
    sections.into_values().for_each(Section::finish);
    root.finish();
}

fn read_variables(given: &mut Given, env: impl Iterator<Item = (String, String)>) {
    let known: BTreeMap<String, _> = SETTINGS.iter().map(|row| (row.variable(), row)).collect();
    let mut named = Vec::new();
    for (name, text) in env {
        if name == "HOSTNAME" && !text.is_empty() {
            given.host = Some(text);
        } else if let Some(row) = known.get(&name) {
            if text.is_empty() {
                continue;
            }
            match row.kind.read(&text) {
                Ok(value) => named.push((row.path, value)),
                Err(fault) => given
                    .problems
                    .push(Problem::elsewhere(row.path, format!("{name} {fault}"))),
            }
        } else if name.starts_with(VARIABLE_PREFIX) && !is_not_ours(&name) {
            let mut problem = Problem::elsewhere("", format!("unknown variable `{name}`"));
            problem.suggestion = nearest(&name, known.keys().map(String::as_str)).map(str::to_owned);
            given.problems.push(problem);
        }
    }
    // A variable for one of two sources of a secret stands over both of the file's.
    for (path, _) in &named {
        for pair in [
            ["database.url", "database.url_file"],
            ["broker.url", "broker.url_file"],
        ] {
            if pair.contains(path) {
                given.values.retain(|given, _| !pair.contains(given));
            }
        }
    }
    given.values.extend(named);
}

fn is_not_ours(name: &str) -> bool {
    name == VARIABLE_OF_THE_FILE || name.starts_with(TEST_VARIABLE_PREFIX)
}
