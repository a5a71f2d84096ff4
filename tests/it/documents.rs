//! The documents say what the code does: the refusals and failure codes, the life of a run, and links that lead
//! somewhere. What is only told in prose is not checked; what has a name or a number is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use countersign::gate::{Refusal, WhoCanAct};
use countersign::model::{FailureCode, RunStatus, Transition, TurnOrdinal, Verdict, next};
use countersign::policy::DenyReason;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// One refusal of each kind.
fn refusals() -> Vec<Refusal> {
    vec![
        Refusal::NotWaiting {
            status: RunStatus::Running,
        },
        Refusal::AlreadyDecided {
            stands: Verdict::Approve,
            late: Verdict::Deny,
        },
        Refusal::Revoked,
        Refusal::AccessDenied,
        Refusal::ConfigurationGone {
            missing: "model `m`".to_owned(),
        },
        Refusal::CorruptState {
            detail: "no state".to_owned(),
        },
        Refusal::SelfApproval,
        Refusal::StaleTurn {
            waiting: TurnOrdinal(2),
            decided: Some(TurnOrdinal(1)),
        },
        Refusal::ServiceAccountWrite {
            tool: "refund".into(),
        },
        Refusal::ApproverUnresolved,
        Refusal::ApproverNotPermitted {
            tool: "refund".into(),
            reason: DenyReason::RequiresAdmin,
        },
        Refusal::NotAuditable,
        Refusal::Quarantined { attempts: 3 },
    ]
}

/// The sections of a part: heading in code style, and the text below it.
fn sections(part: &str) -> BTreeMap<String, String> {
    let mut sections = BTreeMap::new();
    for section in part.split("\n### `").skip(1) {
        let (code, body) = section
            .split_once("`\n")
            .expect("a heading is one code in code style");
        let twice = sections.insert(code.to_owned(), body.trim().to_owned());
        assert!(twice.is_none(), "`{code}` has two sections");
    }
    sections
}

/// The two parts of `docs/refusals.md`: of a decision, and of a run.
fn parts() -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let document = read(&root().join("docs/refusals.md"));
    let (_, rest) = document
        .split_once("\n## Refusals of a decision\n")
        .expect("the first part is there");
    let (decisions, runs) = rest
        .split_once("\n## Failures of a run\n")
        .expect("the second part is there");
    (sections(decisions), sections(runs))
}

/// What a section states under a name, as in `- **HTTP:** 409`.
fn stated<'s>(code: &str, body: &'s str, name: &str) -> &'s str {
    let mark = format!("- **{name}:** ");
    let line = body.lines().find_map(|line| line.strip_prefix(mark.as_str()));
    line.unwrap_or_else(|| panic!("`{code}` does not state `{name}`"))
}

#[test]
fn every_refusal_has_its_section_and_no_other_code_has() {
    let (documented, _) = parts();
    let codes: BTreeSet<&str> = Refusal::CODES.into_iter().collect();
    assert_eq!(
        documented.keys().map(String::as_str).collect::<BTreeSet<_>>(),
        codes
    );
    assert_eq!(
        refusals().iter().map(Refusal::code).collect::<Vec<_>>(),
        Refusal::CODES
    );
}

#[test]
fn a_refusal_is_documented_as_it_is_answered() {
    let (documented, _) = parts();
    for refusal in refusals() {
        let (code, body) = (refusal.code(), &documented[refusal.code()]);
        let http = stated(code, body, "HTTP");
        let status = http.split(' ').next().unwrap_or_default();
        assert_eq!(
            status,
            refusal.http_status().to_string(),
            "`{code}` is answered otherwise"
        );
        let who = match refusal.who_can_act() {
            WhoCanAct::Nobody => "nobody",
            WhoCanAct::SameActor => "the same actor",
            WhoCanAct::AnotherApprover => "another approver",
            WhoCanAct::Operator => "an operator",
        };
        assert!(
            stated(code, body, "Who can act").starts_with(who),
            "`{code}` is for {who} to act on"
        );
        for name in ["Means", "Next", "Looks like"] {
            assert!(
                !stated(code, body, name).trim().is_empty(),
                "`{code}` says nothing under `{name}`"
            );
        }
    }
    let again = Refusal::AlreadyDecided {
        stands: Verdict::Deny,
        late: Verdict::Deny,
    };
    assert_eq!(again.http_status(), 200);
    assert!(stated(again.code(), &documented[again.code()], "HTTP").contains("200"));
}

#[test]
fn every_failure_code_has_its_section_and_no_other_code_has() {
    let (_, documented) = parts();
    let codes: BTreeSet<&str> = FailureCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(
        documented.keys().map(String::as_str).collect::<BTreeSet<_>>(),
        codes
    );
    for (code, body) in &documented {
        for name in ["Means", "Who can act", "Next"] {
            assert!(
                !stated(code, body, name).trim().is_empty(),
                "`{code}` says nothing under `{name}`"
            );
        }
    }
}

/// The arrows of the diagram between two statuses. Those from and to `[*]` are beginnings and ends.
fn arrows() -> BTreeSet<(String, String, String)> {
    let document = read(&root().join("docs/lifecycle.md"));
    let (_, rest) = document
        .split_once("```mermaid\nstateDiagram-v2\n")
        .expect("there is a state diagram");
    let (diagram, _) = rest.split_once("```").expect("the diagram ends");
    diagram
        .lines()
        .filter_map(|line| line.trim().split_once(" --> "))
        .filter(|(from, rest)| *from != "[*]" && !rest.starts_with("[*]"))
        .map(|(from, rest)| {
            let (to, label) = rest
                .split_once(": ")
                .expect("an arrow has its transition: `a --> b: transition`");
            (from.to_owned(), label.to_owned(), to.to_owned())
        })
        .collect()
}

fn legal() -> BTreeSet<(String, String, String)> {
    let pairs = RunStatus::ALL
        .into_iter()
        .flat_map(|from| Transition::ALL.map(|transition| (from, transition)));
    pairs
        .filter_map(|(from, transition)| Some((from, transition, next(from, transition).ok()?)))
        .map(|(from, transition, to)| (from.to_string(), transition.as_str().to_owned(), to.to_string()))
        .collect()
}

#[test]
fn the_diagram_is_the_state_machine() {
    let (drawn, legal) = (arrows(), legal());
    let illegal: Vec<_> = drawn.difference(&legal).collect();
    let missing: Vec<_> = legal.difference(&drawn).collect();
    assert!(
        illegal.is_empty(),
        "the diagram of docs/lifecycle.md has what cannot happen: {illegal:?}"
    );
    assert!(
        missing.is_empty(),
        "the diagram of docs/lifecycle.md lacks: {missing:?}"
    );
}

#[test]
fn the_table_of_the_life_is_the_state_machine() {
    let document = read(&root().join("docs/lifecycle.md"));
    let mut rows = document
        .lines()
        .skip_while(|line| !line.starts_with("| status |"));
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().trim_matches('`').to_owned())
            .collect()
    };
    let heading = cells(rows.next().expect("there is a table of status and transition"));
    let transitions: Vec<&str> = Transition::ALL
        .iter()
        .map(|transition| transition.as_str())
        .collect();
    assert_eq!(heading[1..], transitions);
    let rows: Vec<Vec<String>> = rows
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(cells)
        .collect();
    assert_eq!(rows.len(), RunStatus::ALL.len());
    for row in &rows {
        let from = RunStatus::parse(&row[0]).unwrap_or_else(|| panic!("`{}` is no status", row[0]));
        for (transition, cell) in Transition::ALL.into_iter().zip(&row[1..]) {
            let to = next(from, transition).map_or("–", RunStatus::as_str);
            assert_eq!(cell, to, "{from}, {}", transition.as_str());
        }
    }
}

fn documents() -> Vec<PathBuf> {
    let mut documents = Vec::new();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("docs is readable") {
            let path = entry.expect("an entry of docs is readable").path();
            if path.is_dir() {
                folders.push(path)
            } else {
                documents.push(path)
            }
        }
    }
    let names = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "SECURITY.md",
    ];
    documents.extend(names.map(|name| root().join(name)));
    documents.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    documents
}

/// The heading's address within its page, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase().replace(' ', "-");
    kept.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
        .collect()
}

#[test]
fn every_relative_link_leads_somewhere() {
    let mut dead = Vec::new();
    for document in documents() {
        let text = read(&document);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") || link.contains(char::is_whitespace) {
                continue;
            }
            let (path, fragment) = link
                .split_once('#')
                .map_or((link, None), |(path, part)| (path, Some(part)));
            let folder = document.parent().expect("a document is in a folder");
            let target = if path.is_empty() {
                document.clone()
            } else {
                folder.join(path)
            };
            let found = target.exists()
                && fragment.is_none_or(|part| {
                    let headings = read(&target);
                    headings
                        .lines()
                        .filter(|line| line.starts_with('#'))
                        .any(|line| anchor(line.trim_start_matches('#')) == part)
                });
            if !found {
                dead.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(dead.is_empty(), "links that lead nowhere:\n{}", dead.join("\n"));
}

/// The names of the metrics that the sources count, set or measure.
fn metrics_of(folder: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).expect("a folder of the sources is readable") {
        let path = entry.expect("an entry of the sources is readable").path();
        if path.is_dir() {
            names.extend(metrics_of(&path));
        } else {
            for kind in ["counter!(", "gauge!(", "histogram!("] {
                let text = read(&path);
                let named = text
                    .split(kind)
                    .skip(1)
                    .filter_map(|rest| rest.trim_start().strip_prefix('"'));
                names.extend(named.filter_map(|rest| rest.split('"').next()).map(str::to_owned));
            }
        }
    }
    names
}

#[test]
fn every_metric_is_documented_and_no_other() {
    let document = read(&root().join("docs/operations.md"));
    let rows = document
        .lines()
        .skip_while(|line| !line.starts_with("| metric |"))
        .skip(2);
    let documented: BTreeSet<String> = rows
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| line.split('`').nth(1))
        .map(str::to_owned)
        .collect();
    assert_eq!(documented, metrics_of(&root().join("src")));
}
