//! The map is the territory: the two tables of `ARCHITECTURE.md` are read, and every file of `src` is held against
//! them. A room uses only the rooms that its row names, a foreign crate is named only in its room, every file says
//! what it is for, and none is longer than a person reads at once.
//!
//! The sources are read as text, not compiled: comments, literals and what is compiled for tests only are taken out,
//! and paths are looked for in what is left. A path that climbs to the crate's root by `super` counts as one that
//! begins with `crate`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const MAX_LINES: usize = 500;
const ROOMS: &str = "| room | may use |";
const CRATES: &str = "| crate | only in |";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A table of the document: the first cell, and the words in code style of the second.
fn table(document: &str, heading: &str) -> BTreeMap<String, BTreeSet<String>> {
    let words =
        |cell: &str| -> BTreeSet<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let rows = document.lines().skip_while(|line| line.trim() != heading).skip(2);
    let rows: BTreeMap<_, _> = rows
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
            let [name, uses] = cells[..] else {
                panic!("a row has two cells: {line}")
            };
            let name = words(name)
                .pop_first()
                .unwrap_or_else(|| panic!("a row has a name: {line}"));
            (name, words(uses))
        })
        .collect();
    assert!(!rows.is_empty(), "ARCHITECTURE.md has no table `{heading}`");
    rows
}

fn sources() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the sources is readable") {
            let path = entry.expect("an entry of the sources is readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// `src/gate/bind.rs` is `["gate", "bind"]`, `src/gate/mod.rs` is `["gate"]`, `src/lib.rs` is empty.
fn module_of(file: &Path) -> Vec<String> {
    let inside = file
        .strip_prefix(root().join("src"))
        .expect("a source is below src")
        .with_extension("");
    let mut names: Vec<String> = inside
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    if names.last().is_some_and(|name| name == "mod") || names == ["lib"] {
        names.pop();
    }
    names
}

/// Files that are compiled for tests only: what `#[cfg(test)] mod name;` names, and what is below it.
fn test_files(files: &[PathBuf]) -> BTreeSet<Vec<String>> {
    let mut tests = BTreeSet::new();
    for file in files {
        let tokens = tokens(&read(file));
        for (at, _) in tokens.iter().enumerate() {
            let Some(end) = cfg_test(&tokens, at) else {
                continue;
            };
            let item: Vec<&str> = tokens[end..].iter().map(String::as_str).take(8).collect();
            let name = item
                .iter()
                .position(|word| *word == "mod")
                .and_then(|mod_at| item.get(mod_at + 1..mod_at + 3));
            if let Some([name, ";"]) = name {
                let mut module = module_of(file);
                module.push((*name).to_owned());
                tests.insert(module);
            }
        }
    }
    tests
}

/// The words and marks of a source, without comments and literals. `::` is one mark.
fn tokens(source: &str) -> Vec<String> {
    let chars: Vec<char> = source.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    let is = |at: usize, c: char| chars.get(at) == Some(&c);
    let is_word = |at: usize| chars.get(at).is_some_and(|c| c.is_alphanumeric() || *c == '_');
    while at < chars.len() {
        if is(at, '/') && is(at + 1, '/') {
            while at < chars.len() && !is(at, '\n') {
                at += 1;
            }
        } else if is(at, '/') && is(at + 1, '*') {
            let mut depth = 0;
            loop {
                match (chars.get(at), chars.get(at + 1)) {
                    (Some('/'), Some('*')) => (depth, at) = (depth + 1, at + 2),
                    (Some('*'), Some('/')) => (depth, at) = (depth - 1, at + 2),
                    (None, _) => break,
                    _ => at += 1,
                }
                if depth == 0 {
                    break;
                }
            }
        } else if is(at, '"') {
            at = after_string(&chars, at);
        } else if is(at, '\'') {
            at = after_quote(&chars, at);
        } else if is_word(at) {
            let start = at;
            while is_word(at) {
                at += 1;
            }
            let word: String = chars[start..at].iter().collect();
            let hashes = (at..).take_while(|at| is(*at, '#')).count();
            match word.as_str() {
                "r" | "br" | "cr" if is(at + hashes, '"') => {
                    at = after_raw_string(&chars, at + hashes, hashes)
                }
                "b" | "c" if is(at, '"') => at = after_string(&chars, at),
                "b" if is(at, '\'') => at = after_quote(&chars, at),
                _ => tokens.push(word),
            }
        } else if is(at, ':') && is(at + 1, ':') {
            tokens.push("::".to_owned());
            at += 2;
        } else {
            if !chars[at].is_whitespace() {
                tokens.push(chars[at].to_string());
            }
            at += 1;
        }
    }
    tokens
}

fn after_string(chars: &[char], mut at: usize) -> usize {
    at += 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

fn after_raw_string(chars: &[char], mut at: usize, hashes: usize) -> usize {
    at += 1;
    while at < chars.len() {
        let closes = chars[at] == '"' && (1..=hashes).all(|more| chars.get(at + more) == Some(&'#'));
        at += 1;
        if closes {
            return at + hashes;
        }
    }
    at
}

/// Past a character literal, or past the mark of a lifetime.
fn after_quote(chars: &[char], at: usize) -> usize {
    match (chars.get(at + 1), chars.get(at + 2)) {
        (Some('\\'), _) => {
            // The escaped character may be a quote itself.
            let close = chars[at + 3..].iter().position(|c| *c == '\'');
            close.map_or(chars.len(), |more| at + 3 + more + 1)
        }
        (Some(_), Some('\'')) => at + 3,
        _ => at + 1,
    }
}

/// Where `#[cfg(test)]` begins at `at`: the place after it.
fn cfg_test(tokens: &[String], at: usize) -> Option<usize> {
    let attribute = ["#", "[", "cfg", "(", "test", ")", "]"];
    let here = tokens.get(at..at + attribute.len())?;
    here.iter()
        .zip(attribute)
        .all(|(token, part)| token == part)
        .then_some(at + attribute.len())
}

/// Takes out each item that is compiled for tests only.
fn without_tests(tokens: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match cfg_test(tokens, at) {
            Some(item) => at = after_item(tokens, item),
            None => {
                kept.push(tokens[at].clone());
                at += 1;
            }
        }
    }
    kept
}

/// Past the item that begins here: its further attributes, and all up to a `;` or to the end of its braces.
fn after_item(tokens: &[String], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" => depth -= 1,
            "}" => {
                depth -= 1;
                if depth == 0 {
                    return at;
                }
            }
            ";" if depth == 0 => return at,
            _ => {}
        }
    }
    at
}

/// The rooms that a source names.
fn rooms_named(tokens: &[String], depth: usize) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    let token = |at: usize| tokens.get(at).map_or("", String::as_str);
    for at in 0..tokens.len() {
        let begins = at == 0 || token(at - 1) != "::";
        if !begins {
            continue;
        }
        let mut next = at;
        match token(at) {
            // The binary names the library by its name.
            "crate" | "countersign" if token(at + 1) == "::" => next = at + 2,
            "super" => {
                let mut climbed = 0;
                while token(next) == "super" && token(next + 1) == "::" {
                    (climbed, next) = (climbed + 1, next + 2);
                }
                if climbed < depth {
                    continue;
                }
            }
            _ => continue,
        }
        if token(next) == "{" {
            named.extend(first_words_of_group(tokens, next));
        } else {
            named.insert(token(next).to_owned());
        }
    }
    named
}

/// `{a::B, c::{D, E}}` begins with `a` and `c`.
fn first_words_of_group(tokens: &[String], open: usize) -> Vec<String> {
    let mut words = Vec::new();
    let (mut depth, mut first) = (0, false);
    for token in &tokens[open..] {
        match token.as_str() {
            "{" => (depth, first) = (depth + 1, depth == 0),
            "}" => depth -= 1,
            "," => first = depth == 1,
            word if first && depth == 1 => {
                words.push(word.to_owned());
                first = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    words
}

/// Whether a source names the foreign crate as the beginning of a path, or imports it whole.
fn names_crate(tokens: &[String], name: &str) -> bool {
    tokens.iter().enumerate().any(|(at, token)| {
        let before = |back: usize| at.checked_sub(back).map_or("", |at| tokens[at].as_str());
        // `::name::` is the crate; `other::name::` is not.
        let is_path = |word: &str| word.chars().all(|c| c.is_alphanumeric() || c == '_') && !word.is_empty();
        let begins = before(1) != "::" || !is_path(before(2));
        let followed = tokens.get(at + 1).map_or("", String::as_str);
        token == name && begins && (followed == "::" || before(1) == "use" || before(1) == "crate")
    })
}

#[test]
fn every_room_is_in_the_table_and_the_table_holds_rooms_only() {
    let table: BTreeSet<String> = table(&read(&root().join("ARCHITECTURE.md")), ROOMS)
        .into_keys()
        .collect();
    let rooms: BTreeSet<String> = sources()
        .iter()
        .filter_map(|file| module_of(file).first().cloned())
        .collect();
    let unlisted: Vec<_> = rooms.difference(&table).collect();
    let empty: Vec<_> = table.difference(&rooms).collect();
    assert!(
        unlisted.is_empty(),
        "rooms that the table of ARCHITECTURE.md lacks: {unlisted:?}"
    );
    assert!(
        empty.is_empty(),
        "rooms of the table of ARCHITECTURE.md that src lacks: {empty:?}"
    );
}

#[test]
fn a_row_names_rooms_that_have_a_row() {
    let table = table(&read(&root().join("ARCHITECTURE.md")), ROOMS);
    for (room, uses) in &table {
        let unknown: Vec<_> = uses.iter().filter(|used| !table.contains_key(*used)).collect();
        assert!(
            unknown.is_empty(),
            "the row of `{room}` names what is no room: {unknown:?}"
        );
        assert!(!uses.contains(room), "the row of `{room}` names itself");
    }
}

#[test]
fn no_room_uses_what_its_row_does_not_name() {
    let table = table(&read(&root().join("ARCHITECTURE.md")), ROOMS);
    let files = sources();
    let tests = test_files(&files);
    let mut wrong = Vec::new();
    for file in &files {
        let module = module_of(file);
        let for_tests = (1..=module.len()).any(|length| tests.contains(&module[..length]));
        let Some(room) = module.first().filter(|_| !for_tests) else {
            continue;
        };
        let allowed = table.get(room).unwrap_or_else(|| panic!("`{room}` has no row"));
        let tokens = without_tests(&tokens(&read(file)));
        for used in rooms_named(&tokens, module.len()) {
            if table.contains_key(&used) && used != *room && !allowed.contains(&used) {
                wrong.push(format!("{}: `{room}` uses `{used}`", file.display()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "arrows that ARCHITECTURE.md does not allow:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn a_foreign_crate_is_named_only_in_its_room() {
    let crates = table(&read(&root().join("ARCHITECTURE.md")), CRATES);
    let files = sources();
    let tests = test_files(&files);
    let mut wrong = Vec::new();
    for file in &files {
        let module = module_of(file);
        let for_tests = (1..=module.len()).any(|length| tests.contains(&module[..length]));
        if for_tests {
            continue;
        }
        let room = module.first().map_or("lib", String::as_str);
        let tokens = without_tests(&tokens(&read(file)));
        for (name, rooms) in &crates {
            if !rooms.contains(room) && names_crate(&tokens, name) {
                wrong.push(format!("{}: `{name}`", file.display()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "crates outside of their room:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn every_file_begins_with_what_it_is_for() {
    let silent: Vec<_> = sources()
        .into_iter()
        .filter(|file| !read(file).starts_with("//!"))
        .collect();
    assert!(
        silent.is_empty(),
        "files that do not begin with `//!`: {silent:?}"
    );
}

#[test]
fn no_file_is_longer_than_500_lines() {
    for file in sources() {
        let lines = read(&file).lines().count();
        assert!(
            lines <= MAX_LINES,
            "{} has {lines} lines: it is two files",
            file.display()
        );
    }
}

#[test]
fn the_reader_of_sources_is_not_fooled() {
    let source = r##"
        use crate::{model::{Run, RunId}, store::Store, gate::*};
        // use crate::broker::Broker;
        /* crate::http /* nested */ crate::cli */
        fn f<'a>(x: &'a str) -> char { let _ = "crate::config"; let _ = r#"crate::" worker"#; '\'' }
        fn g() { let _ = ('"', crate::clock::now(), lapin::x(), ::axum::y(), other::sqlx::z()); }
        #[cfg(test)]
        mod tests { use crate::telemetry::T; fn h() { {} } }
        #[cfg(test)] use crate::retry::Pauses;
        use super::super::policy::decide;
    "##;
    let tokens = without_tests(&tokens(source));
    let named: Vec<String> = rooms_named(&tokens, 2).into_iter().collect();
    assert_eq!(named, ["clock", "gate", "model", "policy", "store"]);
    assert!(!rooms_named(&tokens, 3).contains("policy"));
    assert!(names_crate(&tokens, "lapin") && names_crate(&tokens, "axum"));
    assert!(!names_crate(&tokens, "sqlx"));
}
